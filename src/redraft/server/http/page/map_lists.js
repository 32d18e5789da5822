// The list beside the map: its groups, or the matches of a search.

import { element } from "./dom.js";
import { styleOf } from "./map_drawing.js";

const MOST = 60;
const OTHERS = "others";
const UNGROUPED = "The meta of these examples has no groups. Click a point, or search, to see an example.";
const UNMATCHED = "No example on the map has all these words in its input.";
const PATHS = {
  circle: "M19 12a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z",
  square: "M5.5 5.5h13v13h-13z",
  diamond: "M12 3.5 20.5 12 12 20.5 3.5 12z",
  triangle: "M12 4l9 15H3z",
};

const sign = (rank) => {
  const { colour, shape } = styleOf(rank);
  const space = "http://www.w3.org/2000/svg";
  const made = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  made.setAttribute("viewBox", "0 0 24 24");
  made.setAttribute("aria-hidden", "true");
  made.setAttribute("class", `sign group-${colour}`);
  path.setAttribute("d", PATHS[shape]);
  made.append(path);
  return made;
};

const groupButton = ({ name, count, rank }, chosen, choose) =>
  element(
    "button",
    {
      type: "button",
      class: "group",
      "aria-pressed": String(name === chosen),
      onclick: () => choose(name),
    },
    sign(rank),
    element("span", { class: "name" }, name || OTHERS),
    element("span", { class: "of" }, count.toLocaleString("en")),
  );

/** Shows the groups as buttons; a chosen group is highlighted on the map. */
export const showLegend = (place, { groups, chosen, choose }) => {
  if (groups.length === 0) {
    place.replaceChildren(element("p", { class: "quiet-text" }, UNGROUPED));
    return;
  }
  const focused = [...place.querySelectorAll("button")].indexOf(document.activeElement);
  const items = groups.map((group) => element("li", {}, groupButton(group, chosen, choose)));
  place.replaceChildren(
    element("h2", { id: "groups-heading" }, "Groups"),
    element("ul", { "aria-labelledby": "groups-heading" }, items),
  );
  if (focused >= 0) place.querySelectorAll("button")[focused]?.focus();
};

const matchButton = (point, current, open) =>
  element(
    "button",
    {
      type: "button",
      class: "match",
      "aria-current": point === current ? "true" : null,
      onclick: () => open(point),
    },
    sign(point.rank),
    element("span", { class: "name" }, point.label),
  );

/** Shows the matches of a search as buttons that open them. */
export const showMatches = (place, { matches, current, open }) => {
  if (matches.length === 0) {
    place.replaceChildren(element("p", { class: "quiet-text" }, UNMATCHED));
    return;
  }
  // start the list at the current match
  const from = Math.max(0, Math.min(matches.indexOf(current), matches.length - MOST));
  const shown = matches.slice(from, from + MOST);
  const items = shown.map((point) => element("li", {}, matchButton(point, current, open)));
  const rest = `${MOST} of ${matches.length.toLocaleString("en")} matches shown; press Enter for the next.`;
  place.replaceChildren(
    element("h2", { id: "matches-heading" }, "Matches"),
    element("ul", { "aria-labelledby": "matches-heading" }, items),
    matches.length > MOST ? element("p", { class: "quiet-text" }, rest) : "",
  );
};
