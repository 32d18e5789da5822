// Puts the chosen theme on the page before anything is drawn; hence a plain script in the head.
(() => {
  const stored = () => {
    try {
      return localStorage.getItem("redraft.theme");
    } catch {
      return null; // storage may be forbidden
    }
  };
  const theme = stored();
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
