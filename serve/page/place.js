// Place: what there is, and how it is at a glance.
(function (S) {
  'use strict';
  const { h } = S;

  S.views.place = async function (main, params, signal) {
    const { places, version } = await S.ask('places', {}, signal);
    if (!params.name && places.length > 1) {
      S.clear(main, h('h1', {}, 'Places'), h('ul', { class: 'cards' }, places.map((p) => h('li', {},
        h('a', { href: S.go('place', { name: p.name }) }, p.name), h('span', { class: 'dim' },
          p.dir ? 'directory' : S.bytes(p.size))))));
      return;
    }
    const name = params.name || places[0].name;
    const place = places.find((p) => p.name === name) || { name, dir: true };
    S.clear(main, h('h1', {}, place.name), h('p', { class: 'wait' }, 'Listing…'));
    const result = await S.command('ls', { name }, signal);
    const docs = result.doc || [];
    const tables = docs.filter((d) => d.format);
    const rows = tables.reduce((n, d) => n + (d.rows || 0), 0);
    const bytes = tables.reduce((n, d) => n + (d.bytes || 0), 0);
    const bad = docs.filter((d) => d.problem);
    const health0 = h('div', {});
    S.clear(main,
      h('h1', {}, place.name),
      h('dl', { class: 'facts' },
        fact('tables', S.num(tables.length)), fact('rows', S.num(rows)), fact('size', S.bytes(bytes)),
        fact('cannot be read', bad.length ? S.num(bad.length) : 'none', bad.length ? 'bad' : 'good')),
      place.dir ? h('p', {}, h('a', { href: S.go('files', { place: name, name }) }, 'The files of this place')) : null,
      health0,
      docs.length > 6 ? filter(main) : null,
      S.table('What is in ' + place.name, [{ title: 'name' }, { title: 'format' }, { title: 'kind' },
        { title: 'rows', right: true }, { title: 'size', right: true }, { title: 'columns', right: true },
        { title: 'health' }], docs.filter((d) => d.kind !== 'directory').map((d) => row(d, name))),
      S.said(result), h('p', { class: 'dim' }, 'stoa ' + version));
    S.say(S.plural(tables.length, 'table'));
    if (docs.some((d) => d.format === 'kudu')) census(health0, name, signal).catch(() => {});
  };

  // census shows what is left of a cluster: a row for each tablet, a column for each server.
  async function census(at, name, signal) {
    const r = await S.command('census', { name }, signal);
    if (signal.aborted || !r.doc || !r.doc.length) return;
    const servers = [...new Set(r.doc.flatMap((t) => t.tablets.flatMap((x) => x.replicas.map((y) => y.server || ''))))].sort();
    const title = (id) => (id ? id.slice(0, 8) : 'no server');
    const signs = { whole: '✓', behind: '↓', damaged: '✗', missing: '✗', lost: '✗', uncovered: '✗' };
    const chip = (y) => h('span', { class: 'state ' + (y.state === 'whole' ? 'good' : ['behind', 'copying', 'tombstone', 'stranger'].includes(y.state) ? 'dim' : 'bad'),
      title: [y.place, y.last_operation, y.why].filter(Boolean).join('; ') }, (signs[y.state] || '·') + ' ' + y.state);
    S.clear(at, h('section', {}, h('h2', {}, 'The cluster'),
      h('p', {}, S.num(r.doc.filter((t) => t.complete).length) + ' of ' + S.plural(r.doc.length, 'table') + ' complete, ' + S.plural(servers.filter(Boolean).length, 'server')),
      S.table('Replicas by tablet and server', [{ title: 'table' }, { title: 'tablet' }, { title: 'partition' }, ...servers.map((s) => ({ title: title(s) }))],
        r.doc.flatMap((t) => t.tablets.map((x) => [t.table || '(not known)', h('code', {}, (x.tablet || '').slice(0, 8)), x.partition || '',
          ...servers.map((s) => x.replicas.filter((y) => (y.server || '') === s).map(chip))]))), S.said(r)));
  }

  function fact(title, value, kind) {
    return h('div', {}, h('dt', {}, title), h('dd', { class: kind }, value === '' ? h('span', { class: 'dim' }, 'not known') : value));
  }
  S.fact = fact;

  function row(d, place) {
    const short = d.name.startsWith(place) && d.name !== place ? d.name.slice(place.length).replace(/^\//, '') : d.name;
    const open = d.format || d.problem;
    const to = d.format && !(d.problem && d.columns === null) ? S.go('table', { place, name: d.name })
      : S.go('anatomy', { place, name: d.name });
    return [open ? h('a', { href: to }, short) : short, d.format || '', d.kind || '', S.num(d.rows), S.bytes(d.bytes),
      S.num(d.columns), health(d)];
  }

  function health(d) {
    if (d.problem) return h('span', { class: 'bad' }, '✗ ' + d.problem);
    return d.format ? h('span', { class: 'good' }, '✓ opens') : '';
  }

  function filter(main) {
    return h('label', { class: 'field' }, 'Find ', h('input', {
      type: 'search', oninput: (e) => {
        const word = e.target.value.toLowerCase();
        for (const tr of main.querySelectorAll('tbody tr')) tr.hidden = !tr.textContent.toLowerCase().includes(word);
      },
    }));
  }

  // Files: every file below a place, as areas of their sizes.
  S.views.files = async function (main, params, signal) {
    const { files, cut } = await S.ask('files', { name: params.name }, signal);
    files.sort((a, b) => b.size - a.size);
    const total = files.reduce((n, f) => n + f.size, 0);
    const link = (f, text, attrs) => h('a', { href: S.go('anatomy', { place: params.place, name: f.name }), ...attrs }, text);
    const short = (f) => f.name.slice(params.name.length).replace(/^\//, '') || f.name;
    S.clear(main, h('h1', {}, 'Files of ' + S.base(params.name)),
      h('p', {}, S.plural(files.length, 'file') + ', ' + S.bytes(total) + (cut ? '; there are more' : '')),
      S.treemap(files.filter((f) => f.size > 0).slice(0, 300).map((f) => ({
        name: short(f), size: f.size, href: S.go('anatomy', { place: params.place, name: f.name }),
      }))),
      S.table('Files', [{ title: 'name' }, { title: 'size', right: true }],
        files.slice(0, 1000).map((f) => [link(f, short(f)), S.bytes(f.size)])));
  };

  // treemap shows areas in proportion to sizes, in rows: the largest first (squarified).
  S.treemap = function (items) {
    const total = items.reduce((n, i) => n + i.size, 0);
    const box = h('div', { class: 'treemap' });
    if (!total) return box;
    let x = 0, y = 0, w = 100, t = 100; // what is left, in per cent; the box is twice as wide as it is high
    let rest = items.slice().sort((a, b) => b.size - a.size);
    let left = total;
    while (rest.length) {
      const wide = w * 2 >= t; // a column of areas at the left, or a row at the top
      const side = wide ? t : w * 2;
      const area = (i) => (i.size / left) * w * 2 * t;
      let row = [], worst = Infinity;
      for (const i of rest) {
        const next = [...row, i];
        const sum = next.reduce((n, k) => n + area(k), 0);
        const ratio = Math.max(...next.map((k) => Math.max(side * side * area(k) / (sum * sum), sum * sum / (side * side * area(k)))));
        if (ratio > worst) break;
        row = next;
        worst = ratio;
      }
      const size = row.reduce((n, i) => n + i.size, 0);
      const thick = size / left * (wide ? w : t);
      let at = 0;
      for (const i of row) {
        const part = i.size / size;
        const style = wide
          ? { left: x + '%', top: y + at * t + '%', width: thick + '%', height: part * t + '%' }
          : { left: x + at * w + '%', top: y + '%', width: part * w + '%', height: thick + '%' };
        box.append(h(i.href ? 'a' : 'span', {
          href: i.href, style, class: 'area ' + (i.kind || ''), title: [i.name, i.more, S.bytes(i.size)].filter(Boolean).join(', '),
        }, h('b', {}, i.name), ' ', h('small', {}, [S.bytes(i.size), i.more].filter(Boolean).join(', '))));
        at += part;
      }
      if (wide) { x += thick; w -= thick; } else { y += thick; t -= thick; }
      left -= size;
      rest = rest.slice(row.length);
    }
    return box;
  };
})(window.stoa);
