// Values: what a column holds: how often, how large, and in which order.
(function (S) {
  'use strict';
  const { h } = S;
  const svg = (tag, attrs, ...children) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [k, v] of Object.entries(attrs || {})) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };

  S.tab('values', 'Values', () => true, async function (main, params, signal) {
    const first = await S.ask('rows', { name: params.name, n: 1, at: params.at }, signal);
    const names = first.columns.map((c) => c.name);
    const column = params.unnamed ? '' : names.includes(params.column) ? params.column : names[0]; // '' is a name, too
    const out = h('div', { 'aria-live': 'polite' });
    S.clear(main, h('h1', {}, S.base(params.name)), h('p', {}, h('label', { class: 'field' }, 'Column ', h('select', {
      onchange: (e) => { location.hash = S.go('values', { place: params.place, name: params.name, at: params.at, column: e.target.value, unnamed: e.target.value === '' ? '1' : '' }); },
    }, names.map((n) => h('option', { value: n, selected: n === column }, n || '(no name)'))))), out);
    if (column === undefined) return;
    S.clear(out, h('p', { class: 'wait' }, 'Reading…'));
    const path = column === '' || /[."]/.test(column) ? '"' + column.replaceAll('"', '""') + '"' : column;
    const v = await S.ask('values', { name: params.name, column: path, at: params.at }, signal);
    const gone = v.ended && v.total !== null && v.total > v.rows ? v.total - v.rows : 0;
    S.clear(out,
      v.ended ? null : h('p', { class: 'bad' }, 'Only the first ' + S.num(v.rows) + (v.total === null ? '' : ' of ' + S.num(v.total)) + ' rows were looked at.'),
      gone ? h('p', { class: 'bad' }, S.plural(gone, 'row') + ' cannot be read at all: row numbers below count the others.') : null,
      S.lost(v, 'Lost cells are counted as nulls.'), S.altered(v.altered ? [column] : []),
      h('dl', { class: 'facts' }, S.fact('type', v.type), S.fact('rows', S.num(v.rows)), S.fact('nulls', S.num(v.nulls)), v.altered ? S.fact('not UTF-8', S.num(v.altered)) : null,
        S.fact('distinct', (v.distinct_more ? 'more than ' : '') + S.num(v.distinct))),
      v.histogram ? h('section', {}, h('h2', {}, v.histogram.what === 'length' ? 'Lengths, in bytes' : 'Distribution'), histogram(v)) : null,
      v.bands.some((b) => b.min !== null) ? h('section', {}, h('h2', {}, 'Least and greatest ' + (v.by_page ? 'of each page' : 'in the order of the rows')), bands(v)) : null,
      h('section', {}, h('h2', {}, 'Most frequent'), top(v)),
      v.dictionary ? h('section', {}, h('h2', {}, 'Dictionary'), dictionary(v.dictionary)) : null);
    stored(out.querySelector('.facts'), params, column, signal).catch(() => {});
  });

  // stored adds how the column is stored: its encoding and its dictionary.
  async function stored(at, params, column, signal) {
    const { doc } = await S.command('stats', { name: params.name, at: params.at }, signal);
    const d = (doc || []).find((x) => x.column === column);
    if (!d || signal.aborted) return;
    at.append(S.fact('stored', S.bytes(d.stored_bytes) + (d.encoding ? ' as ' + d.encoding : '')),
      S.fact('dictionary', d.dictionary ? S.plural(d.dictionary, 'value') : 'none'));
  }

  const short = (x) => (Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(2) : S.num(Math.round(x * 1000) / 1000));

  function histogram(v) {
    const { counts, from, to, sample, of } = v.histogram;
    const label = named(v, from, to);
    const most = Math.max(...counts, 1);
    const w = 800, t = 160, step = w / counts.length;
    const chart = svg('svg', { viewBox: `0 0 ${w} ${t}`, class: 'chart', role: 'img', preserveAspectRatio: 'none', 'aria-label':
      `Histogram from ${label(from)} to ${label(to)}; the highest bar has ${most} of ${sample}` });
    counts.forEach((n, i) => {
      const tall = n ? Math.max(2, n / most * (t - 4)) : 0;
      chart.append(svg('rect', { x: i * step + 1, y: t - tall, width: step - 2, height: tall, class: 'bin' },
        svg('title', {}, `${label(from + (to - from) * i / counts.length)} to ${label(from + (to - from) * (i + 1) / counts.length)}: ${n}`)));
    });
    const others = v.rows - v.nulls - of;
    return h('figure', {}, chart, h('figcaption', { class: 'scale' }, h('span', {}, label(from)),
      h('span', { class: 'dim' }, (sample < of ? 'a sample of ' + S.num(sample) + ' values' : S.plural(sample, 'value')) + (others ? '; ' + S.num(others) + ' infinite or NaN' : '')), h('span', {}, label(to))));
  }

  // named returns a function for the texts of numbers along a histogram: its ends as cells, and between them dates and times
  // as such.
  function named(v, from, to) {
    const per = { s: 1e-3, ms: 1, us: 1e3, ns: 1e6 }[(/^timestamp\[(\w+)/.exec(v.type) || [])[1]];
    return (x) => {
      if (x === from && v.histogram.lo) return v.histogram.lo;
      if (x === to && v.histogram.hi) return v.histogram.hi;
      const t = new Date(v.type.startsWith('date32') ? x * 864e5 : per ? x / per : NaN);
      return isNaN(t) ? short(x) : t.toISOString().slice(0, per ? 19 : 10).replace('T', ' ');
    };
  }

  function bands(v) {
    const shown = v.bands.filter((b) => b.min !== null);
    const lo = Math.min(...shown.map((b) => b.min)), hi = Math.max(...shown.map((b) => b.max));
    const rows = v.bands[v.bands.length - 1].to;
    const w = 800, t = 200;
    const y = (x) => (hi === lo ? t / 2 : t - 4 - (x / 2 - lo / 2) / (hi / 2 - lo / 2) * (t - 8));
    const what = v.by_page ? 'page' : 'band';
    const { up, down } = v; // of values: the numbers that are drawn are not exact
    const order = shown.length < 2 ? '' : up === shown.length - 1 ? 'Ascending: no ' + what + ' overlaps the one before.'
      : down === shown.length - 1 ? 'Descending: no ' + what + ' overlaps the one before.'
        : S.num(shown.length - 1 - Math.max(up, down)) + ' of ' + S.num(shown.length - 1) + ' ' + what + 's overlap the one before: a filter on this column skips the less.';
    const chart = svg('svg', { viewBox: `0 0 ${w} ${t}`, class: 'chart', role: 'img', preserveAspectRatio: 'none', 'aria-label': 'Bands of least and greatest values. ' + order });
    for (const b of shown) {
      const x = b.from / rows * w;
      chart.append(svg('rect', { x, y: y(b.max) - 1, width: Math.max(1, (b.to - b.from) / rows * w - 0.5), height: Math.max(2, y(b.min) - y(b.max) + 2), class: 'band' },
        svg('title', {}, `rows ${b.from} to ${b.to - 1}: ${b.lo} to ${b.hi}`)));
    }
    return h('figure', {}, h('p', { class: 'dim' }, v.hi), chart, h('p', { class: 'dim' }, v.lo),
      h('figcaption', { class: 'scale' }, h('span', {}, 'row 0'), h('span', { class: 'dim' }, order), h('span', {}, 'row ' + S.num(rows - 1))));
  }

  // dictionary lists entries in the order in which they are stored.
  function dictionary(d) {
    return h('details', {}, h('summary', {}, (d.cut ? 'The first ' : '') + S.num(d.entries.length) + ' different ' + (d.entries.length === 1 ? 'entry' : 'entries') + ', from ' +
      (d.dictionaries === 1 ? '1 dictionary' : S.num(d.dictionaries) + ' dictionaries') + ', in stored order'),
    h('div', { class: 'entries', tabindex: '0', role: 'region', 'aria-label': 'Entries' },
      h('ol', { start: 0 }, d.entries.map((e) => h('li', {}, e === '' ? h('span', { class: 'dim' }, '(empty)') : e)))));
  }

  function top(v) {
    const most = Math.max(1, ...v.top.map((x) => x.n));
    return S.table('Most frequent values', [{ title: 'value' }, { title: 'rows', right: true }, { title: 'compared with the first', quiet: true }], v.top.map((x) => [
      x.value === '' ? h('span', { class: 'dim' }, '(empty)') : x.value.slice(0, 120), S.num(x.n), h('span', { class: 'bar' }, h('i', { style: { width: 100 * x.n / most + '%' } }))]));
  }
})(window.stoa);
