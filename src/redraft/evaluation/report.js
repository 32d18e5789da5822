"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const style = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const config = { displayModeBar: false, responsive: true };

  const axis = (title, more) => ({
    title: { text: title, standoff: 10, font: { size: 13, color: style("muted") } },
    color: style("muted"),
    gridcolor: style("line"),
    linecolor: style("line"),
    zeroline: false,
    fixedrange: true,
    automargin: true,
    ...more,
  });

  // on paper there is no resizing: a plot is as wide as an A4 or Letter page allows
  const size = () => (root.classList.contains("printing") ? { width: 640, height: 300 } : { autosize: true });

  const layout = (more) => ({
    ...size(),
    font: { family: style("sans"), size: 13, color: style("ink") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 8, r: 18, t: 12, b: 8 },
    showlegend: false,
    dragmode: false,
    hovermode: "closest",
    hoverlabel: {
      align: "left",
      bgcolor: style("paper"),
      bordercolor: style("muted"),
      font: { family: style("sans"), size: 13, color: style("ink") },
    },
    ...more,
  });

  const histogram = ({ edges, counts, labels, mean, interval }) => {
    const [low, high] = interval;
    const bars = {
      type: "bar",
      x: counts.map((_, at) => (edges[at] + edges[at + 1]) / 2),
      y: counts,
      width: counts.map((_, at) => edges[at + 1] - edges[at]),
      marker: { color: style("accent"), line: { color: style("paper"), width: 2 } },
      text: labels,
      textposition: "none",
      hovertemplate: "%{text}<extra></extra>",
    };
    const upright = { yref: "paper", y0: 0, y1: 1 };
    const shapes = [
      { ...upright, type: "rect", x0: low, x1: high, fillcolor: style("second"), opacity: 0.16, line: { width: 0 }, layer: "below" },
      // a halo, so that the line stands out from the bars too
      { ...upright, type: "line", x0: mean, x1: mean, line: { color: style("paper"), width: 5 } },
      { ...upright, type: "line", x0: mean, x1: mean, line: { color: style("second"), width: 2, dash: "dash" } },
    ];
    const most = Math.max(...counts);
    return [[bars], layout({
      bargap: 0,
      shapes,
      xaxis: axis("score", { range: [-1, 101], dtick: 20, showgrid: false, ticks: "outside", tickcolor: style("line") }),
      yaxis: axis("examples", { range: [0, most * 1.08], nticks: 5, ...(most < 5 ? { dtick: 1 } : {}) }),
    })];
  };

  const scatter = ({ distances, scores, texts, line }) => {
    const points = {
      type: "scatter",
      mode: "markers",
      x: distances,
      y: scores,
      text: texts,
      marker: { color: style("accent"), size: 8, opacity: distances.length > 400 ? 0.35 : 0.65, line: { color: style("paper"), width: 1 } },
      hovertemplate: "%{text}<br>distance %{x:.3~f}, score %{y:.1f}<extra></extra>",
    };
    const means = {
      type: "scatter",
      mode: "lines+markers",
      x: line.map((bin) => bin.distance),
      y: line.map((bin) => bin.score),
      customdata: line.map((bin) => bin.n),
      line: { color: style("second"), width: 2.5 },
      marker: { color: style("second"), size: 7, symbol: "diamond" },
      hovertemplate: "mean of %{customdata} examples<br>distance %{x:.3~f}, score %{y:.1f}<extra></extra>",
    };
    return [[points, means], layout({
      xaxis: axis("distance of the prototype", { showgrid: false, ticks: "outside", tickcolor: style("line"), nticks: 8 }),
      yaxis: axis("score", { range: [-4, 104], dtick: 20 }),
    })];
  };

  const figures = { histogram, scatter };
  const draw = () => {
    for (const canvas of document.querySelectorAll("[data-plot]")) {
      const name = canvas.dataset.plot;
      if (data[name] === null) continue;
      const [traces, shape] = figures[name](data[name]);
      Plotly.react(canvas, traces, shape, config);
    }
  };

  // a box that scrolls must be reachable by keyboard; one that does not should be no stop
  const markScrolling = () => {
    for (const box of document.querySelectorAll(".text, .fields")) {
      const scrolls = box.scrollHeight > box.clientHeight + 1 && box.clientHeight > 0;
      if (scrolls) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };

  let opened = [];
  const setPrinting = (printing) => {
    root.classList.toggle("printing", printing);
    if (printing) {
      opened = [...document.querySelectorAll(".example:not([open])")];
    }
    for (const details of opened) details.open = printing;
    draw();
  };

  draw();
  markScrolling();
  addEventListener("resize", markScrolling);
  document.addEventListener("toggle", markScrolling, true);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => setPrinting(true));
  addEventListener("afterprint", () => setPrinting(false));
})();
