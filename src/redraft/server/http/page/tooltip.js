// One tooltip for the page, shown at the hovered or focused element.

import { element } from "./dom.js";

const GAP = 8;
const EDGE = 8;

const bubble = element("div", { class: "tooltip", role: "tooltip", id: "tooltip", hidden: true });
let boxNow = null;

/** Places the bubble above its box, or below if there is no room. */
const place = () => {
  const box = boxNow();
  const { width, height } = bubble.getBoundingClientRect();
  const most = document.documentElement.clientWidth - width - EDGE;
  const above = box.top - height - GAP;
  bubble.style.left = `${Math.max(EDGE, Math.min(box.left + box.width / 2 - width / 2, most))}px`;
  bubble.style.top = `${above < EDGE ? box.bottom + GAP : above}px`;
};

/** Shows text at the client rectangle that `box()` returns. */
export const showTooltip = (text, box) => {
  if (!bubble.isConnected) document.body.append(bubble);
  bubble.textContent = text;
  bubble.hidden = false;
  boxNow = box;
  place();
};

/** Hides the tooltip. */
export const hideTooltip = () => {
  bubble.hidden = true;
};

/** Shows a tooltip while an element is hovered or focused; Escape hides it. */
export const attachTooltip = (target, text) => {
  const show = () => {
    showTooltip(text(), () => target.getClientRects()[0] ?? target.getBoundingClientRect());
    target.setAttribute("aria-describedby", bubble.id);
  };
  const hide = () => {
    hideTooltip();
    target.removeAttribute("aria-describedby");
  };
  target.addEventListener("pointerenter", show);
  target.addEventListener("focus", show);
  target.addEventListener("pointerleave", hide);
  target.addEventListener("blur", hide);
  target.addEventListener("keydown", (event) => event.key === "Escape" && hide());
};

// focusing may scroll the page: move the bubble with it
addEventListener("scroll", () => bubble.hidden || place(), { passive: true, capture: true });
