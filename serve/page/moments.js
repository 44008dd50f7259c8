// Moments: the past of a table as a line of time, and the moment that is shown.
(function (S) {
  'use strict';
  const { h } = S;

  // moments draws the line of a table, if its format keeps a past or says when its parts came.
  S.moments = async function (at, params, sources, signal) {
    const formats = sources.map((s) => s.format);
    if (formats.includes('kudu')) await history(at, params, signal);
    else if (formats.includes('carbon')) await loads(at, params, signal);
  };

  const svg = (tag, attrs, ...children) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };

  // line draws events, {time, what, bad}, on a line from the first to the last.
  function line(events, from, to) {
    const w = 800, x = (t) => 8 + (to > from ? (t - from) / (to - from) : 0.5) * (w - 16);
    const chart = svg('svg', { viewBox: `0 0 ${w} 24`, class: 'timeline', role: 'img', preserveAspectRatio: 'none', 'aria-label':
      S.plural(events.length, 'event') + ' from ' + iso(from) + ' to ' + iso(to) });
    chart.append(svg('line', { x1: 8, x2: w - 8, y1: 12, y2: 12 }));
    for (const e of events) chart.append(svg('rect', { x: x(e.time) - 2, y: 3, width: 4, height: 18 }, svg('title', {}, iso(e.time) + ': ' + e.what)));
    return chart;
  }

  const iso = (ms) => new Date(ms).toISOString();
  // after is the microsecond after a moment.
  function after(text) {
    const [, seconds, fraction] = /^(.*?)(?:\.(\d+))?Z$/.exec(text);
    const micros = Number((fraction || '').padEnd(6, '0').slice(0, 6)) + 1;
    return micros < 1e6 ? seconds + '.' + String(micros).padStart(6, '0') + 'Z' : iso(Date.parse(seconds + 'Z') + 1000);
  }
  const list = (title, events) => S.table(title, [{ title: 'moment' }, { title: 'event' }, { title: 'what' }],
    events.map((e) => [e.text, e.what, e.more || '']));

  // handle is what is dragged along the line, over steps; at(k) is the moment of step k as a parameter ('' = now), and
  // text(k) as people read it. now says which one is chosen.
  function handle(params, steps, chosen, at, text) {
    const now = h('output', {}, text(chosen) || 'now');
    const slider = h('input', { type: 'range', min: 0, max: steps, value: chosen, 'aria-label': 'The moment that is shown', 'aria-valuetext': now.textContent,
      oninput: (e) => { now.textContent = text(Number(e.target.value)) || 'now'; e.target.setAttribute('aria-valuetext', now.textContent); },
      onchange: (e) => { location.hash = S.go('table', { ...params, at: at(Number(e.target.value)) }); } });
    return { slider, now };
  }

  // history is the past of a table that can be read as of a moment: the handle on the line is dragged, or moved by keys.
  async function history(at, params, signal) {
    const r = await S.command('history', { name: params.name }, signal);
    const doc = (r.doc || [])[0];
    if (signal.aborted || !doc || !doc.first || !doc.last) return;
    const events = [];
    for (const t of doc.tablets) {
      for (const e of t.events) {
        if (e.at) events.push({ time: Date.parse(e.at.time), text: e.at.time, what: e.event, more: [(t.tablet || '').slice(0, 8), e.what].filter(Boolean).join(': ') });
      }
    }
    const first = doc.exact_from || doc.first;
    const from = Date.parse(first.time), last = Date.parse(doc.last.time), to = last + 1;
    const steps = 1000;
    // what is shown of a moment was written before it: at the first one there was nothing, and after the last one nobody
    // knows what there was. A millisecond could lie outside of them: the ends are exact texts
    const text = (k) => {
      if (k >= steps) return '';
      const ms = from + Math.ceil((to - from) * k / steps);
      return k <= 0 ? after(first.time) : ms > last ? doc.last.time : iso(ms);
    };
    const chosen = params.at ? Math.max(0, Math.min(steps, Math.round((Date.parse(params.at) - from) / Math.max(1, to - from) * steps))) : steps;
    const { slider, now } = handle(params, steps, chosen, text, (k) => text(k));
    const one = first.time === doc.last.time; // there is nothing between
    S.clear(at, h('section', { class: 'past' }, h('h2', {}, 'The past'), line(events, from, to), one ? null : slider,
      h('p', {}, one ? null : ['Shown as of ', now, '. '], h('span', { class: 'dim' }, 'It can be read exactly from ' + (doc.exact_from || doc.first).time + ' on; the last operation is of ' + doc.last.time + '.')),
      list('Events', events.slice(0, 200)), S.said(r)));
  }

  // loads are the segments of a table by the time of their load.
  async function loads(at, params, signal) {
    const r = await S.command('loads', { name: params.name }, signal);
    const docs = (r.doc || []).filter((d) => d.load_ended);
    if (signal.aborted || !docs.length) return;
    const events = docs.map((d) => ({ time: Date.parse(d.load_ended), text: d.load_ended, what: 'segment ' + d.segment + ': ' + d.status,
      more: S.plural(d.rows || 0, 'row') + (d.deleted_rows ? ', ' + S.num(d.deleted_rows) + ' deleted' : '') + (d.read ? '' : '; not read') }));
    const times = events.map((e) => e.time);
    // a stop for each load, in the order of time; the last one is now
    const stops = docs.slice().sort((a, b) => Date.parse(a.load_ended) - Date.parse(b.load_ended));
    const of = (k) => (k >= stops.length ? '' : String(stops[k].segment));
    const chosen = params.at ? stops.findIndex((d) => String(d.segment) === params.at) : -1;
    const { slider, now } = handle(params, stops.length, chosen < 0 ? stops.length : chosen, of, (k) => of(k) && 'the load of segment ' + of(k));
    S.clear(at, h('section', { class: 'past' }, h('h2', {}, 'The loads'), line(events, Math.min(...times), Math.max(...times)), slider,
      h('p', {}, 'Shown as of ', now, '.'), list('Segments', events), S.said(r)));
  }
})(window.stoa);
