// One tooltip for the page, shown at what is hovered or focused.

import { element } from "./dom.js";

const GAP = 8;
const EDGE = 8;

const bubble = element("div", { class: "tooltip", role: "tooltip", id: "tooltip", hidden: true });
let boxNow = null;

/** Puts the bubble above its box of the window, or below where there is no room. */
const place = () => {
  const box = boxNow();
  const { width, height } = bubble.getBoundingClientRect();
  const most = document.documentElement.clientWidth - width - EDGE;
  const above = box.top - height - GAP;
  bubble.style.left = `${Math.max(EDGE, Math.min(box.left + box.width / 2 - width / 2, most))}px`;
  bubble.style.top = `${above < EDGE ? box.bottom + GAP : above}px`;
};

/** Shows text at the box of the window that `box()` gives. */
export const showTooltip = (text, box) => {
  if (!bubble.isConnected) document.body.append(bubble);
  bubble.textContent = text;
  bubble.hidden = false;
  boxNow = box;
  place();
};

/** Takes the tooltip away. */
export const hideTooltip = () => {
  bubble.hidden = true;
};

/** Explains an element when it is hovered or focused; Escape hides the explanation. */
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

// the page may scroll to what was focused: the bubble goes with it
addEventListener("scroll", () => bubble.hidden || place(), { passive: true, capture: true });
