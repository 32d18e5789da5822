// Positions of the map's points on the screen: pure functions for panning and zooming.
// A view is {scale, x, y}: a point p is at (p.x * scale + x, y - p.y * scale).

const LEAST = 0.5;
const MOST = 60;

const extent = (values) => [Math.min(...values), Math.max(...values)];

/** Returns the view that shows all points; `whole` is its scale, for the zoom limits. */
export const fit = (points, { width, height }, margin) => {
  const [left, right] = extent(points.map(({ x }) => x));
  const [low, high] = extent(points.map(({ y }) => y));
  const wide = Math.max(width - 2 * margin, 1) / Math.max(right - left, 1e-9);
  const tall = Math.max(height - 2 * margin, 1) / Math.max(high - low, 1e-9);
  const scale = Math.min(wide, tall); // one scale for both axes keeps distances true
  const x = width / 2 - (scale * (left + right)) / 2;
  const y = height / 2 + (scale * (low + high)) / 2;
  return { scale, whole: scale, x, y };
};

/** Returns the screen position of a point. */
export const toScreen = (view, { x, y }) => ({ x: x * view.scale + view.x, y: view.y - y * view.scale });

/** Returns the view moved by (dx, dy) pixels. */
export const panned = (view, dx, dy) => ({ ...view, x: view.x + dx, y: view.y + dy });

/** Returns the view zoomed around the screen position `at`. */
export const zoomed = (view, factor, at) => {
  const scale = Math.min(MOST * view.whole, Math.max(LEAST * view.whole, view.scale * factor));
  const by = scale / view.scale;
  return { ...view, scale, x: at.x - (at.x - view.x) * by, y: at.y - (at.y - view.y) * by };
};

/** Returns the view centred on a point, or unchanged if the point is visible. */
export const revealing = (view, point, { width, height }, margin) => {
  const at = toScreen(view, point);
  const isSeen = at.x >= margin && at.x <= width - margin && at.y >= margin && at.y <= height - margin;
  return isSeen ? view : panned(view, width / 2 - at.x, height / 2 - at.y);
};

/** Returns the point nearest to a screen position, or null if none is within `reach`. */
export const nearest = (view, points, place, reach) => {
  let best = null;
  let least = reach * reach;
  for (const point of points) {
    const at = toScreen(view, point);
    const distance = (at.x - place.x) ** 2 + (at.y - place.y) ** 2;
    if (distance <= least) [best, least] = [point, distance];
  }
  return best;
};
