// The server's API as functions. Knows URLs, the token and errors; knows no element.

const TOKEN = "redraft.token";

/**
 * A failed request. `kind`: "stopped" (no server), "loading", "refused" (no token),
 * "invalid" (a bad request) or "failed" (a server error). */
export class Problem extends Error {
  constructor(kind, message, field = null) {
    super(message);
    this.kind = kind;
    this.field = field;
  }
}

/** True if a request was aborted because a newer one replaced it. */
export const isAborted = (error) => error instanceof DOMException && error.name === "AbortError";

/** Creates abort signals, each of which aborts the previous request. */
export const onlyLatest = () => {
  let current = null;
  const cancel = () => current?.abort();
  const begin = () => {
    cancel();
    current = new AbortController();
    return current.signal;
  };
  return { begin, cancel };
};

/** Stores the token for as long as the tab is open. */
export const keepToken = (token) => sessionStorage.setItem(TOKEN, token);

const authorisation = () => {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}` } : {};
};

const request = async (path, { body, signal } = {}) => {
  const json = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  try {
    const headers = { ...authorisation(), ...type };
    return await fetch(new URL(path, document.baseURI), { ...json, signal, headers });
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new Problem("stopped", "The server does not answer.");
  }
};

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const problemOf = async (response) => {
  const kind = { 503: "loading" }[response.status] ?? (response.status < 500 ? "invalid" : "failed");
  try {
    const { error } = await response.json();
    // the message is shown beside the field: drop its name
    return new Problem(kind, sentence(error.message.replace(`${error.field}: `, "")), error.field);
  } catch {
    return new Problem(kind, `The server responded with status ${response.status} and no message.`);
  }
};

/** Creates the API; `askToken(wasWrong)` resolves when there is a token to try, or throws. */
export const createApi = (askToken) => {
  const send = async (path, options) => {
    for (;;) {
      const tried = sessionStorage.getItem(TOKEN);
      const response = await request(path, options);
      if (response.ok) return response.json();
      if (response.status !== 401) throw await problemOf(response);
      // another request may have obtained a newer token meanwhile
      if (tried === sessionStorage.getItem(TOKEN)) await askToken(tried !== null);
    }
  };
  const named = (model) => `v1/models/${encodeURIComponent(model)}`;
  return {
    models: async () => (await send("v1/models")).models,
    predict: async (body, signal) => (await send("v1/predict", { body, signal })).results[0],
    retrieve: async (body, signal) => (await send("v1/retrieve", { body, signal })).results[0],
    add: (body) => send("v1/examples", { body }),
    complete: async (body, signal) => (await send("v1/complete", { body, signal })).completions,
    map: (model, signal) => send(`${named(model)}/map`, { signal }),
    example: (model, id, signal) => send(`${named(model)}/examples/${encodeURIComponent(id)}`, { signal }),
    /** Resolves to true if the server is up and its models are loaded. */
    isReady: () => request("readyz").then(({ status }) => status !== 503, () => false),
  };
};
