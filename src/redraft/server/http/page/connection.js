// Handles a lost server and a missing token: a banner with automatic retries, and a token dialog.

import { announce } from "./dom.js";
import { keepToken, Problem } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 5000;

const LOST = ["The server does not answer.", "Your input is kept. Retrying …"];
const LOADING = ["Models are loading.", "This page continues when they are ready."];

/** Shows the banner while the server is down, and repeats failed requests when it is back. */
export const createConnection = ({ banner, isReady }) => {
  const waiting = new Map();
  const button = banner.querySelector("button");
  let timer = null;
  let pause = FIRST_PAUSE;

  const recover = () => {
    banner.hidden = true;
    pause = FIRST_PAUSE;
    announce("The server is back.");
    const again = [...waiting.values()];
    waiting.clear();
    for (const act of again) act();
  };
  const check = async () => {
    clearTimeout(timer);
    button.textContent = "Retrying …";
    const isBack = await isReady();
    button.textContent = "Retry";
    if (isBack) return recover();
    pause = Math.min(LONGEST_PAUSE, pause * 1.5);
    timer = setTimeout(check, pause);
  };
  button.addEventListener("click", check);

  /** Queues an action for retry; a view's new action replaces its old one. */
  const wait = ([heading, text], who, act) => {
    waiting.set(who, act);
    banner.querySelector("strong").textContent = heading;
    banner.querySelector("span").textContent = text;
    if (!banner.hidden) return;
    banner.hidden = false;
    announce(`${heading} ${text}`);
    timer = setTimeout(check, pause);
  };
  return {
    lost: (who, act) => wait(LOST, who, act),
    loading: (who, act) => wait(LOADING, who, act),
  };
};

/** Creates a function that asks for the token; all waiting requests share one dialog. */
export const createTokenPrompt = (dialog) => {
  const field = dialog.querySelector("input");
  const problem = dialog.querySelector(".problem");
  let pending = null;

  const ask = (wasWrong) =>
    new Promise((resolve, reject) => {
      problem.textContent = wasWrong ? "The server did not accept that token." : "";
      field.value = "";
      const closed = () => {
        pending = null;
        if (dialog.returnValue === "given") {
          keepToken(field.value.trim());
          resolve();
        } else reject(new Problem("refused", "This server requires a token."));
      };
      dialog.returnValue = "";
      dialog.addEventListener("close", closed, { once: true });
      dialog.showModal();
      field.focus();
    });

  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.close("given");
  });
  dialog.querySelector("[value=cancel]").addEventListener("click", () => dialog.close(""));
  return (wasWrong) => (pending ??= ask(wasWrong));
};
