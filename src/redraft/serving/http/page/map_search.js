// What the map is searched for, and what its groups are. Pure: points in, points out.

/** The groups, most frequent first, each with its rank; the others, whose name is empty, have rank 0. */
export const rankGroups = (points) => {
  const counts = new Map();
  for (const { group } of points) counts.set(group, (counts.get(group) ?? 0) + 1);
  const others = counts.get("") ?? 0;
  counts.delete("");
  const named = [...counts]
    .sort(([a, m], [b, n]) => n - m || a.localeCompare(b))
    .map(([name, count], at) => ({ name, count, rank: at + 1 }));
  return others > 0 ? [...named, { name: "", count: others, rank: 0 }] : named;
};

/** The points with the rank of their groups; the others come first and are drawn beneath. */
export const withRanks = (points, groups) => {
  const ranks = new Map(groups.map(({ name, rank }) => [name, rank]));
  const ranked = points.map((point) => ({ ...point, rank: ranks.get(point.group) }));
  return [...ranked.filter(({ rank }) => rank === 0), ...ranked.filter(({ rank }) => rank > 0)];
};

/** The points in which every word of the query is found. */
export const search = (points, query) => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return points.filter(({ label, group }) => {
    const text = `${label} ${group}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
};
