// The panel with the full example of a point on the map.

import { copyButton, inputFields, notes } from "./example.js";
import { element, icon, skeleton } from "./dom.js";

const CLOSE = "M6 6l12 12M18 6 6 18";

const header = (close, ...actions) => {
  const attributes = { type: "button", class: "quiet", "aria-label": "Close", onclick: close };
  const parts = [element("h2", {}, "Example"), ...actions, element("button", attributes, icon(CLOSE))];
  return element("header", { class: "section-header" }, parts);
};

/** Shows a placeholder while the example is loading. */
export const showExampleLoading = (panel, close) => panel.replaceChildren(header(close), skeleton(6));

/** Shows an example. */
export const showExample = (panel, { x, y, meta }, { close, use }) => {
  const output = element("pre", { class: "code", tabindex: 0, role: "group", "aria-label": "Output" }, y);
  panel.replaceChildren(
    header(close, element("button", { type: "button", onclick: () => use(x) }, "Use this input")),
    element("h3", {}, "Input"),
    inputFields(x),
    element("h3", { class: "with-action" }, "Output", copyButton(() => y)),
    output,
    notes(meta) || "",
  );
};
