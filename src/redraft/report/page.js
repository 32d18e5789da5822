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
  const size = (height) => (root.classList.contains("printing") ? { width: 640, height } : { autosize: true });

  const layout = (more) => ({
    ...size(300),
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

  const bars = ({ edges, counts, labels }) => ({
    type: "bar",
    x: counts.map((_, at) => (edges[at] + edges[at + 1]) / 2),
    y: counts,
    width: counts.map((_, at) => edges[at + 1] - edges[at]),
    marker: { color: style("accent"), line: { color: style("paper"), width: 2 } },
    text: labels,
    textposition: "none",
    hovertemplate: "%{text}<extra></extra>",
  });

  const upright = { yref: "paper", y0: 0, y1: 1 };
  const dashed = (at) => [
    // a halo, so that the line stands out from the bars too
    { ...upright, type: "line", x0: at, x1: at, line: { color: style("paper"), width: 5 } },
    { ...upright, type: "line", x0: at, x1: at, line: { color: style("second"), width: 2, dash: "dash" } },
  ];

  const countAxis = (title, counts) => {
    const most = Math.max(...counts);
    return axis(title, { range: [0, most * 1.08], nticks: 5, ...(most < 5 ? { dtick: 1 } : {}) });
  };

  const histogram = (values) => {
    const [low, high] = values.interval;
    const band = { ...upright, type: "rect", x0: low, x1: high, fillcolor: style("second"), opacity: 0.16, line: { width: 0 }, layer: "below" };
    return [[bars(values)], layout({
      bargap: 0,
      shapes: [band, ...dashed(values.mean)],
      xaxis: axis("score", { range: [-1, 101], dtick: 20, showgrid: false, ticks: "outside", tickcolor: style("line") }),
      yaxis: countAxis("examples", values.counts),
    })];
  };

  const distances = (values) => [[bars(values)], layout({
    bargap: 0,
    shapes: dashed(values.median),
    xaxis: axis("distance of the prototype", { showgrid: false, ticks: "outside", tickcolor: style("line"), nticks: 8 }),
    yaxis: countAxis("examples", values.counts),
  })];

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

  // in the order of the shapes in sections.py; 0 is the group of the others
  const symbols = ["circle", "square", "diamond", "triangle-up"];
  const map = ({ groups, evaluated, axes }) => {
    const count = groups.reduce((sum, group) => sum + group.x.length, 0);
    const shared = { type: "scatter", mode: "markers", hovertemplate: "%{text}<extra></extra>" };
    const traces = groups.map(({ x, y, texts, colour }) => ({
      ...shared,
      x,
      y,
      text: texts,
      marker: {
        color: style(`group-${colour}`),
        symbol: symbols[colour ? (colour - 1) % symbols.length : 0],
        size: count > 800 ? 6 : 8,
        opacity: colour ? 0.75 : 0.4,
        line: { width: 0 },
      },
    }));
    const crosses = {
      ...shared,
      x: evaluated.x,
      y: evaluated.y,
      text: evaluated.texts,
      marker: { symbol: "x-thin", size: count > 800 ? 5 : 7, line: { color: style("ink"), width: 1.4 } },
    };
    const bare = { showticklabels: false, showgrid: false, nticks: 6 };
    return [[...traces, crosses], layout({
      xaxis: axis(axes[0], bare),
      // one scale for both, or distances would mislead
      yaxis: axis(axes[1], { ...bare, scaleanchor: "x" }),
    })];
  };

  const confidence = (values) => {
    const { confidences, shares, lows, highs, texts, counts } = values;
    const points = {
      type: "scatter",
      mode: "markers",
      x: confidences,
      y: shares,
      text: texts,
      error_y: {
        type: "data",
        array: highs.map((high, at) => high - shares[at]),
        arrayminus: lows.map((low, at) => shares[at] - low),
        color: style("accent"),
        thickness: 1.5,
        width: 4,
      },
      marker: { color: style("accent"), size: 10, line: { color: style("paper"), width: 1.5 } },
      hovertemplate: "%{text}<extra></extra>",
    };
    const diagonal = { type: "line", layer: "below", x0: 0, x1: 100, y0: 0, y1: 100, line: { color: style("second"), width: 2, dash: "dash" } };
    // an editor that is seldom sure has its points on the left: no need to show the rest
    const percent = (most) => {
      const end = Math.min(100, Math.ceil(most / 20 + 0.01) * 20);
      return { range: [-0.02 * end, 1.02 * end], dtick: end > 40 ? 20 : end / 4, ticksuffix: " %" };
    };
    // gaps and no outlines, which would hide a bar of one answer
    const given = { ...bars(values), width: 0.9 * (values.edges[1] - values.edges[0]), marker: { color: style("accent") }, yaxis: "y2" };
    return [[points, given], layout({
      ...size(400),
      shapes: [diagonal],
      xaxis: axis("confidence", { ...percent(values.most), showgrid: false, ticks: "outside", tickcolor: style("line"), anchor: "y2" }),
      yaxis: axis("exactly right", { ...percent(Math.max(...highs)), domain: [0.28, 1] }),
      yaxis2: { ...countAxis("answers", counts), domain: [0, 0.2], nticks: 3 },
    })];
  };

  const plots = { histogram, scatter, confidence, distances, map };
  const draw = () => {
    for (const canvas of document.querySelectorAll("[data-plot]")) {
      const name = canvas.dataset.plot;
      if (!data[name]) continue;
      const [traces, shape] = plots[name](data[name]);
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

  // examples by verdict and by words; the text of each is read once, at the first search
  const examples = [...document.querySelectorAll(".example")];
  const search = document.getElementById("search");
  const texts = new Map();
  const textOf = (example) => {
    if (!texts.has(example)) texts.set(example, example.textContent.toLowerCase());
    return texts.get(example);
  };
  let shown = "all";
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const example of examples) {
      const isRight = example.classList.contains("right");
      const isWanted = shown === "all" || isRight === (shown === "right");
      example.hidden = !isWanted || !words.every((word) => textOf(example).includes(word));
    }
    const count = examples.filter((example) => !example.hidden).length;
    document.getElementById("found").textContent = count < examples.length ? `${count} of ${examples.length} shown` : "";
  };
  search.addEventListener("input", filter);
  for (const button of document.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => {
      shown = button.dataset.show;
      for (const other of document.querySelectorAll("[data-show]")) other.setAttribute("aria-pressed", String(other === button));
      filter();
    });
  }

  let opened = [];
  const setPrinting = (printing) => {
    root.classList.toggle("printing", printing);
    if (printing) {
      opened = [...document.querySelectorAll(".example:not([open]):not([hidden])")];
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
