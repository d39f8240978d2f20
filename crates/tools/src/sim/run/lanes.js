(function () {
  "use strict";
  const root = document.getElementById("weft-timeline");
  const zoomed = document.getElementById("zoomed");
  const ticks = document.getElementById("ticks");
  const data = root.dataset;
  const left = Number(data.left), width = Number(data.width);
  const us = Number(data.us), most = Number(data.zoom);
  const top = Number(data.top), bottom = Number(data.bottom);
  const name = "http://www.w3.org/2000/svg";
  let scale = 1, shift = 0, grip = null;

  function add(kind, attributes, text) {
    const made = document.createElementNS(name, kind);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    ticks.appendChild(made);
  }

  function drawTicks() {
    ticks.textContent = "";
    const first = -shift / scale / width * us, span = us / scale;
    const unit = Math.pow(10, Math.floor(Math.log10(span / 6)));
    const step = [1, 2, 5, 10].map(x => x * unit).find(x => span / x <= 12);
    const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    for (let i = Math.ceil(first / step); i * step <= first + span; i++) {
      const x = left + (i * step - first) / span * width;
      add("line", {x1: x, x2: x, y1: top, y2: bottom + 5, stroke: "#bbbbbb"});
      add("text", {x: x, y: bottom + 20, "text-anchor": "middle"}, (i * step).toFixed(digits));
    }
  }

  function show() {
    scale = Math.min(Math.max(scale, 1), most);
    shift = Math.min(0, Math.max(shift, width - width * scale));
    zoomed.setAttribute("transform", "translate(" + shift + " 0) scale(" + scale + " 1)");
    drawTicks();
  }

  function place(event) {
    const matrix = root.getScreenCTM();
    return (event.clientX - matrix.e) / matrix.a - left;
  }

  root.addEventListener("wheel", function (event) {
    event.preventDefault();
    const at = place(event), before = scale;
    scale = Math.min(Math.max(scale * Math.exp(-event.deltaY / 400), 1), most);
    shift = at - (at - shift) * scale / before;
    show();
  }, {passive: false});
  root.addEventListener("mousedown", function (event) { grip = place(event) - shift; event.preventDefault(); });
  window.addEventListener("mouseup", function () { grip = null; });
  window.addEventListener("mousemove", function (event) {
    if (grip !== null) { shift = place(event) - grip; show(); }
  });
  root.addEventListener("dblclick", function () { scale = 1; shift = 0; show(); });
  show();
})();
