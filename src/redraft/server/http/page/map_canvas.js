// The map's canvas as a control: drag, pinch, wheel and keyboard.

import { draw, readColours } from "./map_drawing.js";
import { fit, nearest, panned, revealing, toScreen, zoomed } from "./viewport.js";

const MARGIN = 36;
const STEP = 60;
const REACH = { mouse: 12, touch: 26, pen: 18 };
const CLICK = 5;
const MOVES = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
const ZOOMS = { "+": 1.3, "=": 1.3, "-": 1 / 1.3, _: 1 / 1.3 };

/** Creates the control; `on.hover(point, place)` and `on.pick(point)` are its callbacks. */
export const createMapCanvas = (canvas, on) => {
  const pointers = new Map();
  let points = [];
  let view = null;
  let marks = { isFaint: () => false, ringed: [] };
  let colours = null;
  let frame = null;
  let travelled = 0;

  const size = () => ({ width: canvas.clientWidth, height: canvas.clientHeight });
  const middle = () => ({ x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 });
  const render = () => {
    frame = null;
    if (!view || canvas.clientWidth === 0) return;
    colours ??= readColours(canvas);
    draw(canvas, { view, points, ...marks, colours });
  };
  const schedule = () => (frame ??= requestAnimationFrame(render));
  const setView = (wanted) => {
    view = wanted;
    schedule();
  };
  const whole = () => points.length > 0 && canvas.clientWidth > 0 && setView(fit(points, size(), MARGIN));

  const resize = () => {
    const { width, height } = size();
    if (width === 0) return;
    const isNew = view === null;
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    if (isNew || view.scale === view.whole) whole();
    render(); // at once: resizing clears the canvas
  };
  const placeOf = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const under = (event) =>
    view && nearest(view, points, placeOf(event), REACH[event.pointerType] ?? REACH.mouse);
  const hover = (point) => {
    canvas.classList.toggle("pointing", Boolean(point));
    on.hover(point, point && toScreen(view, point));
  };

  const pinch = (before, after) => {
    const span = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y) || 1;
    const centre = ([a, b]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
    const [from, to] = [centre(before), centre(after)];
    setView(zoomed(panned(view, to.x - from.x, to.y - from.y), span(after) / span(before), to));
  };
  const move = (event) => {
    if (!view) return;
    if (!pointers.has(event.pointerId)) return hover(under(event));
    const before = [...pointers.values()];
    const last = pointers.get(event.pointerId);
    const now = placeOf(event);
    pointers.set(event.pointerId, now);
    travelled += Math.hypot(now.x - last.x, now.y - last.y);
    if (pointers.size === 2) pinch(before, [...pointers.values()]);
    else if (travelled > CLICK) {
      hover(null);
      setView(panned(view, now.x - last.x, now.y - last.y));
    }
  };
  const release = (event) => {
    if (!pointers.delete(event.pointerId) || pointers.size > 0) return;
    const point = event.type === "pointerup" && travelled <= CLICK ? under(event) : null;
    if (point) on.pick(point);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (pointers.size === 0) travelled = 0;
    pointers.set(event.pointerId, placeOf(event));
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const speed = event.ctrlKey ? 0.01 : 0.0016; // browsers report a touchpad pinch with Ctrl
      if (view) setView(zoomed(view, Math.exp(-event.deltaY * speed), placeOf(event)));
      hover(null);
    },
    { passive: false },
  );
  const zoom = (factor) => view && setView(zoomed(view, factor, middle()));
  canvas.addEventListener("keydown", (event) => {
    if (!view || event.ctrlKey || event.metaKey || event.altKey) return;
    if (MOVES[event.key]) setView(panned(view, ...MOVES[event.key]));
    else if (ZOOMS[event.key]) zoom(ZOOMS[event.key]);
    else if (event.key === "0") whole();
    else return;
    event.preventDefault();
  });
  new ResizeObserver(resize).observe(canvas);
  addEventListener("themechange", () => {
    colours = null;
    schedule();
  });

  return {
    /** Shows these points and fits them into the view. */
    show: (wanted) => {
      points = wanted;
      view = null;
      resize();
    },
    /** Draws some points faintly and rings others. */
    mark: (wanted) => {
      marks = wanted;
      schedule();
    },
    /** Moves the view so that a point is visible. */
    reveal: (point) => view && setView(revealing(view, point, size(), MARGIN)),
    zoom,
    whole,
  };
};
