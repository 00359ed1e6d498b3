// Charts by uPlot from the values in #charts; tables that sort. Without this script the page still tells everything.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colours = { // lines that differ in lightness too, for print and for people who do not see all colours
    light: ["#0b5cad", "#c2410c", "#15803d", "#7c3aed", "#b8860b", "#475569"],
    dark: ["#7db8ff", "#ff9d5c", "#6fdc9a", "#c4a5ff", "#f2d06b", "#b6c2d1"],
  };
  const drawn = [];

  const shown = (value) => {
    if (value == null) return "–";
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
    const size = Math.abs(value);
    return size >= 1e6 || size < 1e-3 ? value.toExponential(2) : Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 9 });
  };

  function draw(k, inPrint) {
    const chart = charts[k];
    const place = document.getElementById(`chart-${k}`);
    const isDark = dark.matches && !inPrint;
    const palette = isDark ? colours.dark : colours.light;
    const ink = isDark ? "#a5b0be" : "#46505d";
    const grid = { stroke: isDark ? "#29313c" : "#e7eaef", width: 1 };
    const bars = chart.lines.map((line, i) => (line.style === "bars" ? i : -1)).filter((i) => i >= 0);
    // Bars on top of each other: the sums are drawn from the highest to the lowest, each over the one behind it.
    const values = chart.lines.map((line) => line.values);
    const drawnValues = values.map((own, i) => (bars.includes(i)
      ? own.map((_, row) => bars.filter((j) => j <= i).reduce((sum, j) => sum + (values[j][row] || 0), 0) || null) : own));
    const order = chart.lines.map((_, i) => i).sort((a, b) => bars.includes(b) - bars.includes(a) || (bars.includes(a) ? b - a : a - b));
    const series = order.map((i) => {
      const line = chart.lines[i];
      const colour = line.muted ? (isDark ? "#717d8c" : "#a3adb9") : palette[i % palette.length];
      return {
        label: line.name, stroke: colour, width: line.style === "bars" ? 0 : 2, spanGaps: true,
        fill: line.style === "bars" ? colour : undefined,
        dash: line.style === "dashed" ? [6, 5] : undefined,
        paths: line.style === "bars" ? uPlot.paths.bars({ size: [0.92, 60] }) : undefined,
        points: { show: line.style !== "bars" && !line.muted && chart.x.length <= 12, size: 6 },
        value: (u, drawnValue, s, row) => (row == null ? "" : shown(values[i][row])),
      };
    });
    const halfBar = chart.x.length > 1 ? (chart.x[1] - chart.x[0]) / 2 : 0.5;
    const range = (fixed) => (fixed ? () => fixed : undefined);
    const axis = (name, isLog) => ({
      label: name, stroke: ink, grid, ticks: grid, labelSize: 22, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      values: (u, splits) => splits.map((v) => (v == null ? null : isLog && !Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6) ? "" : shown(v))),
    });
    const room = (u, values) => Math.max(50, 22 + 7 * Math.max(...(values || [""]).map((text) => String(text ?? "").length)));
    const options = {
      width: Math.max(place.clientWidth, 220), height: 270, series: [{ label: chart.xName, value: (u, v) => (v == null ? "" : shown(v)) }, ...series],
      scales: {
        x: { time: false, distr: chart.logX ? 3 : 1, range: range(chart.xRange) || (bars.length ? (u, low, high) => [low - halfBar, high + halfBar] : undefined) },
        y: { distr: chart.logY ? 3 : 1, range: range(chart.yRange) || (bars.length ? (u, low, high) => [0, high * 1.05 || 1] : undefined) },
      },
      axes: [axis(chart.xName, chart.logX), { ...axis(chart.yName, chart.logY), size: room }],
      legend: { markers: { dash: (u, i) => (u.series[i].dash ? "dashed" : "solid") } },
      cursor: { drag: { x: false, y: false }, points: { size: 8 } },
    };
    if (drawn[k]) drawn[k].destroy();
    drawn[k] = new uPlot(options, [chart.x, ...order.map((i) => drawnValues[i])], place);
    for (const canvas of place.querySelectorAll("canvas")) canvas.setAttribute("aria-hidden", "true");
    for (const legend of place.querySelectorAll(".u-legend")) legend.setAttribute("aria-hidden", "true");
  }

  const drawAll = (inPrint) => charts.forEach((_, k) => draw(k, inPrint));

  function readWithKeys(k) {
    const place = document.getElementById(`chart-${k}`);
    const reading = document.getElementById(`reading-${k}`);
    const chart = charts[k];
    let row = -1;
    place.addEventListener("keydown", (event) => {
      const last = chart.x.length - 1;
      const next = { ArrowRight: Math.min(row + 1, last), ArrowLeft: Math.max(row - 1, 0), Home: 0, End: last }[event.key];
      if (next === undefined || last < 0) return;
      event.preventDefault();
      row = next;
      const plot = drawn[k];
      plot.setCursor({ left: plot.valToPos(chart.x[row], "x"), top: 10 });
      const parts = chart.lines.map((line) => `${line.name} ${shown(line.values[row])}`);
      reading.textContent = `${chart.xName} ${shown(chart.x[row])}: ${parts.join("; ")}`;
    });
  }

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && !head.classList.contains("number"));
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compare = head.classList.contains("number")
        ? (a, b) => Number(key(a)) - Number(key(b)) || 0
        : (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
      const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? compare(a, b) : compare(b, a)));
      table.tBodies[0].append(...rows);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
    }));
  }

  drawAll(false);
  charts.forEach((_, k) => readWithKeys(k));
  document.querySelectorAll(".scroll > table").forEach(sortable);
  dark.addEventListener("change", () => drawAll(false));
  addEventListener("beforeprint", () => drawAll(true));
  addEventListener("afterprint", () => drawAll(false));
  new ResizeObserver(() => charts.forEach((_, k) => {
    const width = Math.max(document.getElementById(`chart-${k}`).clientWidth, 220);
    if (drawn[k].width !== width) drawn[k].setSize({ width, height: 270 });
  })).observe(document.querySelector("main"));
  document.documentElement.dataset.ready = "yes";
})();
