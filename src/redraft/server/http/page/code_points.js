// Python counts code points, JavaScript UTF-16 units: "🙂" is one code point and two units.

/** Returns the number of code points before an offset in UTF-16 units. */
export const charactersBefore = (text, units) => {
  let count = 0;
  for (const _ of text.slice(0, units)) count += 1;
  return count;
};
