// The page around the views: routing, model selection and theme.

import { createApi } from "./api.js";
import { createConnection, createTokenPrompt } from "./connection.js";
import { createCompletion } from "./completion.js";
import { createExampleMap } from "./example_map.js";
import { counted, element, notice } from "./dom.js";
import { createPlayground } from "./playground.js";

const MODEL = "redraft.model";
const THEME = "redraft.theme";
const FIRST = "playground";

const byId = (id) => document.getElementById(id);
const api = createApi(createTokenPrompt(byId("token")));
const connection = createConnection({ banner: byId("banner"), isReady: api.isReady });
const chooser = byId("model");

/** Shared by the views: the API, the connection, and `use`, which opens an input in the playground. */
const shared = {
  api,
  connection,
  use: (x) => {
    views.playground.show(chosenModel());
    views.playground.fill(x);
    location.hash = "#/playground";
  },
};
const views = {
  playground: createPlayground(byId("playground"), shared),
  completion: createCompletion(byId("completion"), shared),
  map: createExampleMap(byId("map"), shared),
};
let models = [];

const routeOf = (hash) => {
  const name = hash.replace(/^#\//, "");
  return Object.hasOwn(views, name) ? name : FIRST;
};

const chosenModel = () => models.find(({ name }) => name === chooser.value) ?? models[0];

const factsOf = (model) =>
  [counted(model.examples, "example"), `${model.retriever} retriever`, `${model.editor} editor`].join(" · ");

const showOnly = (id) => {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== id;
};

const showRoute = () => {
  const route = routeOf(location.hash);
  const model = chosenModel();
  const section = byId(route);
  section.querySelector(".model-facts").textContent = factsOf(model);
  showOnly(route);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#/${route}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${section.querySelector("h1").textContent} – Redraft`;
  views[route].show(model);
};

const fillChooser = () => {
  const wanted = [chooser.value, sessionStorage.getItem(MODEL)];
  chooser.replaceChildren(...models.map(({ name }) => element("option", { value: name }, name)));
  const selected = wanted.find((candidate) => models.some(({ name }) => name === candidate));
  if (selected) chooser.value = selected;
  chooser.disabled = models.length < 2;
};

const showWithoutModel = (...parts) => {
  byId("without-model").replaceChildren(notice(...parts));
  showOnly("without-model");
};

/** Adds models that are still loading once they are ready. */
const awaitOthers = async () => {
  if (await api.isReady()) return;
  connection.loading("models", async () => {
    models = await api.models().catch(() => models);
    fillChooser();
  });
};

const start = async () => {
  try {
    models = await api.models();
  } catch (problem) {
    if (problem.kind === "loading") return connection.loading("models", start);
    if (problem.kind === "stopped") return connection.lost("models", start);
    const again = element("button", { type: "button", onclick: start }, "Try again");
    return showWithoutModel("The models could not be loaded", problem.message, again);
  }
  if (models.length === 0) {
    return showWithoutModel("No model is served", "Start the server with a model: redraft serve MODEL.");
  }
  fillChooser();
  addEventListener("hashchange", showRoute);
  chooser.addEventListener("change", () => {
    sessionStorage.setItem(MODEL, chooser.value);
    showRoute();
  });
  showRoute();
  awaitOthers();
};

const applyTheme = (theme) => {
  const { dataset } = document.documentElement;
  if (theme === "auto") delete dataset.theme;
  else dataset.theme = theme;
  try {
    localStorage.setItem(THEME, theme);
  } catch {
    // storage may be disabled: the choice then lasts until the page is closed
  }
  dispatchEvent(new Event("themechange"));
};

const startTheme = () => {
  const { theme = "auto" } = document.documentElement.dataset;
  byId("theme").querySelector(`[value=${theme}]`).checked = true;
  byId("theme").addEventListener("change", (event) => applyTheme(event.target.value));
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  isDark.addEventListener("change", () => dispatchEvent(new Event("themechange")));
};

byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash of the address selects the view and must not change
  byId("main").focus();
});
startTheme();
start();
