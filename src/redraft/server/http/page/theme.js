// Applies the chosen theme before the first paint; hence a plain script in the head.
(() => {
  const stored = () => {
    try {
      return localStorage.getItem("redraft.theme");
    } catch {
      return null; // storage may be disabled
    }
  };
  const theme = stored();
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
