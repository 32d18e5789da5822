// The map of the examples: pan and zoom, search, and details of each point.

import { counted, announce, element, icon, notice } from "./dom.js";
import { createMapCanvas } from "./map_canvas.js";
import { hideTooltip, showTooltip } from "./tooltip.js";
import { isAborted, onlyLatest } from "./api.js";
import { rankGroups, search, withRanks } from "./map_search.js";
import { showExample, showExampleLoading } from "./map_example.js";
import { showLegend, showMatches } from "./map_lists.js";

const STEP = 1.5;
const PLUS = "M12 5v14M5 12h14";
const MINUS = "M5 12h14";
const WHOLE = "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5";

const HELP =
  "Drag or use the arrow keys to move, wheel or + and − to zoom, 0 to see all. " +
  "Search also reaches every point.";

const tool = (label, path, act) => {
  const attributes = { type: "button", class: "quiet", "aria-label": label, title: label, onclick: act };
  return element("button", attributes, icon(path));
};

const controls = () => ({
  canvas: element("canvas", {
    tabindex: 0,
    role: "application",
    "aria-roledescription": "map",
    "aria-describedby": "map-help",
  }),
  query: element("input", {
    type: "search",
    id: "map-query",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "map-count",
  }),
  caption: element("p", { class: "map-caption" }),
  tools: element("div", { class: "map-tools" }),
  count: element("p", { class: "count", id: "map-count", role: "status" }),
  list: element("div", { class: "map-list" }),
  panel: element("aside", { class: "map-panel", "aria-label": "Example", tabindex: -1, hidden: true }),
});

const layout = () => {
  const made = controls();
  const label = element("label", { for: "map-query" }, "Search the inputs");
  const field = element("div", { class: "field" }, label, made.query, made.count);
  const finder = element("div", { class: "map-finder" }, field, made.list);
  const side = element("div", { class: "map-side" }, finder, made.panel);
  const stage = element("div", { class: "map-stage" }, made.canvas, made.tools);
  const help = element("p", { class: "hint", id: "map-help" }, HELP);
  const main = element("div", { class: "map-main" }, stage, made.caption, help);
  return { ...made, finder, whole: element("div", { class: "map-columns" }, main, side) };
};

const loadingLayout = () => {
  const line = () => element("div", { class: "skeleton line" });
  const main = element("div", { class: "map-main" }, element("div", { class: "map-stage skeleton" }));
  const side = element("div", { class: "map-side" }, line(), line(), line());
  return element("div", { class: "map-columns", "aria-busy": "true" }, main, side);
};

const withoutMap = (retriever) =>
  notice(
    "This model has no map",
    `Its retriever, ${retriever}, has too few examples for two dimensions, or too similar ones. ` +
      "Models with a few different examples have a map.",
  );

const captionOf = ({ points, examples, share, key }) => {
  const all = counted(examples, "example");
  const shown = points.length < examples ? `${points.length.toLocaleString("en")} of ${all}` : all;
  const grouped = key ? ` Colours and shapes: ${key}.` : "";
  const variance = `Two dimensions explain ${Math.round(100 * share)} % of the variance.`;
  return `${shown}; similar ones are close together. ${variance}${grouped}`;
};

/** Creates the view in a section of the page. */
export const createExampleMap = (section, { api, connection, use }) => {
  const place = section.querySelector(".map-body");
  const latest = onlyLatest();
  const latestExample = onlyLatest();
  const parts = layout();
  let model = null;
  let points = [];
  let groups = [];
  let matches = [];
  let current = null;
  let opened = null;
  let group = null;

  const hover = (point, at) => {
    if (!point) return hideTooltip();
    const box = () => {
      const { left, top } = parts.canvas.getBoundingClientRect();
      return { left: left + at.x, top: top + at.y - 4, bottom: top + at.y + 4, width: 0 };
    };
    return showTooltip(point.group ? `${point.label}\n${point.group}` : point.label, box);
  };
  const canvas = createMapCanvas(parts.canvas, { hover, pick: (point) => open(point) });

  const isQueried = () => parts.query.value.trim() !== "";
  const mark = () => {
    const matching = new Set(matches);
    const isFaint = (point) =>
      (isQueried() && !matching.has(point)) || (group !== null && point.group !== group);
    canvas.mark({ isFaint, ringed: [current, opened] });
  };
  const drawList = () => {
    if (isQueried()) return showMatches(parts.list, { matches, current, open });
    return showLegend(parts.list, { groups, chosen: group, choose: (name) => chooseGroup(name) });
  };
  const chooseGroup = (name) => {
    group = group === name ? null : name;
    drawList();
    mark();
  };
  const find = () => {
    matches = search(points, parts.query.value);
    current = null;
    group = null;
    const [some, all] = [matches, points].map(({ length }) => length.toLocaleString("en"));
    parts.count.textContent = isQueried() ? `${some} of ${all} match` : "";
    drawList();
    mark();
  };
  const goTo = (step) => {
    if (matches.length === 0) return;
    const from = matches.indexOf(current);
    const to = from < 0 && step < 0 ? matches.length - 1 : (from + step + matches.length) % matches.length;
    current = matches[to];
    parts.count.textContent = `${to + 1} of ${matches.length.toLocaleString("en")} matches`;
    canvas.reveal(current);
    drawList();
    mark();
    announce(current.label);
  };

  const close = () => {
    opened = null;
    latestExample.cancel();
    parts.panel.hidden = true;
    parts.finder.hidden = false;
    mark();
    parts.query.focus();
  };
  const open = async (point) => {
    opened = point;
    hideTooltip();
    canvas.reveal(point);
    mark();
    parts.panel.hidden = false;
    parts.finder.hidden = true;
    showExampleLoading(parts.panel, close);
    parts.panel.focus();
    try {
      const example = await api.example(model.name, point.id, latestExample.begin());
      showExample(parts.panel, example, { close, use });
    } catch (problem) {
      if (isAborted(problem)) return;
      if (problem.kind === "stopped") connection.lost("example", () => open(point));
      else parts.panel.append(notice("This example cannot be shown", problem.message));
    }
  };

  const show = (map) => {
    if (map.points.length === 0) {
      place.replaceChildren(withoutMap(model.retriever));
      return;
    }
    groups = map.key === null ? [] : rankGroups(map.points);
    points = withRanks(map.points, rankGroups(map.points));
    parts.canvas.setAttribute("aria-label", `Map of ${counted(points.length, "example")}`);
    parts.caption.textContent = captionOf(map);
    parts.query.value = "";
    opened = null;
    parts.panel.hidden = true;
    parts.finder.hidden = false;
    place.replaceChildren(parts.whole);
    canvas.show(points);
    find();
  };
  const load = async () => {
    place.replaceChildren(loadingLayout());
    try {
      show(await api.map(model.name, latest.begin()));
    } catch (problem) {
      if (isAborted(problem)) return;
      if (problem.kind === "stopped") connection.lost("map", load);
      else {
        const again = element("button", { type: "button", onclick: load }, "Try again");
        place.replaceChildren(notice("The map could not be loaded", problem.message, again));
      }
    }
  };

  parts.tools.append(
    tool("Zoom in", PLUS, () => canvas.zoom(STEP)),
    tool("Zoom out", MINUS, () => canvas.zoom(1 / STEP)),
    tool("See all", WHOLE, canvas.whole),
  );
  parts.query.addEventListener("input", find);
  parts.query.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    goTo(event.shiftKey ? -1 : 1);
  });
  parts.panel.addEventListener("keydown", (event) => event.key === "Escape" && close());

  return {
    /** Shows the map of a model, requested once. */
    show: (wanted) => {
      if (model?.name === wanted.name) return;
      model = wanted;
      load();
    },
  };
};
