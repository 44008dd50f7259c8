// Rows: a table of any length by windows of positions, or the rows that pass a filter, as far as one scrolls.
(function (S) {
  'use strict';
  const { h } = S;
  const rowHeight = 28;
  const windowRows = 100;
  const tallest = 6e6; // pixels that every browser can scroll; a longer table is scrolled in proportion

  S.tab('rows', 'Rows', () => true, async function (main, params, signal) {
    const v = { name: params.name, place: params.place, where: params.where || '', raw: params.raw === 'true', moment: params.at || '', signal };
    v.at = h('div', { class: 'rows' });
    v.error = h('div', { class: 'at-error', role: 'alert' });
    v.note = h('div', {});
    S.clear(main, h('h1', {}, S.base(v.name)), bar(v), v.error, v.note, v.at);
    await show(v, Number(params.row || 0));
  });

  function bar(v) {
    const where = h('input', { type: 'text', name: 'where', value: v.where, placeholder: "price > 3 and name like 'a%'",
      spellcheck: 'false', autocomplete: 'off', list: 'columns', 'aria-label': 'Filter: only rows for which this is true' });
    const form = h('form', {
      class: 'bar', role: 'search', onsubmit: (e) => {
        e.preventDefault();
        v.where = where.value.trim();
        keep(v);
        show(v, 0);
      },
    }, h('label', { class: 'field grow' }, 'Rows where ', where), h('button', {}, 'Filter'),
    h('label', { class: 'field' }, 'Go to row ', h('input', {
      type: 'number', min: '0', class: 'short', onchange: (e) => v.goTo && v.goTo(Number(e.target.value)),
    })),
    h('label', { class: 'field' }, h('input', {
      type: 'checkbox', checked: v.raw, onchange: (e) => { v.raw = e.target.checked; keep(v); show(v, v.first || 0); },
    }), ' raw'),
    h('label', { class: 'field' }, 'Export ', h('select', {
      onchange: (e) => { if (e.target.value) save(v, e.target.value); e.target.value = ''; },
    }, h('option', { value: '' }, 'as…'), ['csv', 'jsonl', 'json', 'tsv', 'arrow'].map((f) => h('option', {}, f)))),
    h('datalist', { id: 'columns' }));
    complete(where, form.querySelector('datalist'), v);
    return form;
  }

  // save downloads the rows as a file. If they are damaged, nothing is saved unasked: what is whole, or all rows with
  // nulls, is what a person then chooses, and what the file lacks is told.
  async function save(v, form, damaged) {
    const q = { name: v.name, form, where: v.where, at: v.moment, damaged };
    S.clear(v.error);
    try {
      const r = await fetch(S.address('export', q), { signal: v.signal });
      if (!r.ok) throw Object.assign(new Error(), await r.json().catch(() => ({ error: 'the server answered ' + r.status })));
      r.body.cancel();
      location.href = S.address('export', q);
    } catch (err) {
      if (v.signal.aborted) return;
      err.message = err.error || err.message;
      S.clear(v.error, S.problem(err));
      if (err.class !== 'failed' || damaged) return;
    }
    if (damaged) lacks(v, q);
    else if (v.error.firstChild || v.lost.length || v.lostMore || v.noticed.length) v.error.append(choice(v, form));
  }

  const choice = (v, form) => h('p', { class: 'bar' }, 'Of a damaged table: ',
    h('button', { type: 'button', onclick: () => save(v, form, 'skip-rows') }, 'Export the rows that are whole'),
    h('button', { type: 'button', onclick: () => save(v, form, 'null-cells') }, 'Export all rows, with null for what is lost'));

  // lacks tells what the file that is being saved is without.
  async function lacks(v, q) {
    S.clear(v.error, h('p', { class: 'wait' }, 'Looking for what the file lacks…'));
    try {
      const r = await S.ask('reads', { name: q.name, at: q.at, where: q.where }, v.signal);
      const altered = S.altered((r.altered || []).map((a) => a.column));
      S.clear(v.error, S.lost(r, q.damaged === 'skip-rows' ? 'The file is without the rows of which a cell is lost.' : 'The file has null for the cells that are lost.') ||
        (altered ? null : h('p', {}, 'Nothing is lost.')), altered, r.ended ? null : h('p', { class: 'bad' }, 'There may be more: this took too long, and was stopped.'));
    } catch (err) {
      if (!v.signal.aborted) S.clear(v.error, S.problem(err));
    }
  }

  const keep = (v) => S.remember('rows', { place: v.place, name: v.name, where: v.where, raw: v.raw ? 'true' : '', at: v.moment });

  // complete offers the columns, and after a column the comparisons, for the word that is being typed.
  function complete(input, list, v) {
    input.addEventListener('input', () => {
      const m = /^(.*?)([\w.]*)$/s.exec(input.value);
      const after = /[\w")\]]\s+$/.test(m[1]) && !/\b(and|or|not)\s+$/i.test(m[1]);
      const words = after ? ['=', '<', '>', '<=', '>=', '!=', 'is null', 'is not null', 'in (', 'like ', 'between ', 'and ', 'or ']
        : (v.columns || []).map((c) => (/^[a-z_]\w*$/i.test(c.name) ? c.name : '"' + c.name.replaceAll('"', '""') + '"'));
      S.clear(list, words.filter((w) => w.toLowerCase().startsWith(m[2].toLowerCase())).slice(0, 50)
        .map((w) => h('option', { value: m[1] + w })));
    });
  }

  // wrong shows an error of a filter with a mark below its place.
  function wrong(v, err) {
    S.clear(v.error, err.at !== undefined && v.where
      ? h('pre', { tabindex: '0' }, v.where + '\n' + ' '.repeat([...new TextDecoder().decode(new TextEncoder().encode(v.where).slice(0, err.at))].length) +
        '^ ' + err.message.replace(/^invalid: /, '').split('\n')[0])
      : S.problem(err));
  }

  async function show(v, row) {
    S.clear(v.error);
    S.clear(v.note);
    v.lost = [];
    v.lostMore = false;
    v.noticed = [];
    v.altered = new Set();
    try {
      const first = await S.ask('rows', { name: v.name, at: v.moment, where: v.where, raw: v.raw, from: v.where ? 0 : Math.max(0, row - row % windowRows), n: windowRows }, v.signal);
      v.columns = first.columns;
      if (v.where || first.total <= windowRows) list(v, first);
      else grid(v, first, row);
    } catch (err) {
      if (v.signal.aborted) return;
      S.clear(v.at);
      wrong(v, err);
    }
  }

  function head(v, sort) {
    return h('thead', {}, h('tr', {}, h('th', { scope: 'col', class: 'right' }, 'row'), v.columns.map((c, i) => h('th', {
      scope: 'col', class: c.kind === 'number' ? 'right' : null, 'aria-sort': v.sorted === i ? (v.down ? 'descending' : 'ascending') : null,
    }, sort ? h('button', { class: 'plain', type: 'button', title: 'Sort what is loaded', onclick: () => sort(i) }, c.name,
      v.sorted === i ? (v.down ? ' ↓' : ' ↑') : '') : c.name, h('small', {}, c.type)))));
  }

  // nullCell shows a cell without a value: it is null, or cannot be read, or which of the two is not known: where losses
  // or the row have no position.
  function nullCell(v, name, at) {
    const lost = v.lost.filter((l) => !l.column || l.column === name);
    const here = at !== undefined && lost.find((l) => l.from !== null && l.from <= at && at < l.to);
    if (here) return h('td', { class: 'lost', title: here.error }, 'lost');
    const maybe = at === undefined ? lost[0] : lost.find((l) => l.from === null);
    if (maybe || v.lostMore) return h('td', { class: 'lost', title: maybe ? maybe.error : null }, 'null or lost');
    return h('td', { class: 'null' }, 'null');
  }

  function line(v, cells, at, index) {
    return h('tr', { 'aria-rowindex': index }, at === undefined ? h('td', { class: 'right dim' }) : h('th', { scope: 'row', class: 'right dim' }, S.num(at)),
      cells.map((c, i) => (c === null ? nullCell(v, v.columns[i].name, at) : h('td', { class: v.columns[i].kind === 'number' ? 'right' : null, title: c.length > 40 ? c : null }, c))));
  }

  // losses remembers and tells what an answer lacks.
  function losses(v, r) {
    const known = new Set(v.lost.map((l) => JSON.stringify(l)));
    v.lost.push(...(r.lost || []).filter((l) => !known.has(JSON.stringify(l))));
    v.lostMore = v.lostMore || r.lost_more;
    v.noticed = r.noticed || v.noticed;
    for (const a of r.altered || []) v.altered.add(a.column);
    const told = S.lost({ lost: v.lost, lost_more: v.lostMore, noticed: v.noticed }, v.where ? 'Rows of which the filter needs a lost cell are not among these.' : 'What cannot be read is marked.');
    S.clear(v.note, r.recovered ? h('p', { class: 'bad' }, 'Damaged: this is what recovery finds.') : null, told, S.altered([...v.altered]));
  }

  // list shows rows one after the other and gets more when its end comes into view.
  function list(v, first) {
    const rows = [];
    let last = first;
    const body = h('tbody', {});
    const table = h('table', {});
    const end = h('div', { class: 'end' });
    const take = (r) => {
      last = r;
      r.rows.forEach((cells, i) => rows.push({ cells, at: r.at ? r.at[i] : undefined }));
      losses(v, r);
    };
    const sort = (i) => {
      v.down = v.sorted === i && !v.down;
      v.sorted = i;
      const key = (x) => (x.cells[i] === null ? null : comparable(v, v.columns[i], x.cells[i]));
      rows.sort((x, y) => {
        const a = key(x), b = key(y);
        const c = a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1;
        return v.down ? -c : c;
      });
      draw();
    };
    const draw = () => {
      S.clear(table, h('caption', { class: 'hidden' }, 'Rows'), head(v, sort), S.clear(body, rows.map((x, i) => line(v, x.cells, x.at, i + 1))));
      told();
    };
    const told = () => {
      const of = last.total === null ? '' : ' of ' + S.num(last.total);
      const text = last.loaded ? 'The ' + S.plural(rows.length, 'row') + ' of ' + S.num(last.total) + ' that are loaded, sorted' : v.where ? S.plural(rows.length, 'row') + ' of the first ' + S.num(last.next) + of + ' positions pass'
        : S.plural(rows.length, 'row') + of;
      S.clear(end, text + (last.end ? '.' : ' '), last.loaded ? [' ', h('button', { type: 'button', onclick: () => show(v, last.loaded.from) }, 'All rows, in their order')] : last.end ? null : h('button', { type: 'button', onclick: more }, 'Look on'));
      S.say(text);
    };
    let busy = false;
    const more = async () => {
      if (busy || last.end) return;
      busy = true;
      try {
        const r = await S.ask('rows', { name: v.name, at: v.moment, where: v.where, raw: v.raw, from: last.next, n: windowRows }, v.signal);
        const before = rows.length;
        take(r);
        if (v.sorted === undefined) body.append(...rows.slice(before).map((x, i) => line(v, x.cells, x.at, before + i + 1)));
        else draw();
        told();
      } catch (err) {
        if (!v.signal.aborted) wrong(v, err);
      }
      busy = false;
    };
    v.sorted = undefined;
    v.first = 0;
    v.goTo = first.loaded ? (to) => show(v, to) : null;
    take(first);
    draw();
    const scroll = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Rows' }, table, end);
    S.clear(v.at, scroll);
    if (window.IntersectionObserver) {
      const seen = new IntersectionObserver((all) => all.some((e) => e.isIntersecting) && more(), { root: scroll });
      seen.observe(end);
      v.signal.addEventListener('abort', () => seen.disconnect());
    }
    return sort;
  }

  // comparable returns what orders a cell in a column: whole numbers and decimals are compared with all their digits.
  function comparable(v, column, text) {
    if (column.kind !== 'number' || v.raw) return text;
    if (/^-?\d+$/.test(text) && /^u?int/.test(column.type)) return BigInt(text);
    const decimal = /^decimal\w*\(\d+,\s*(\d+)\)/.exec(column.type), parts = /^(-?\d+)(?:\.(\d+))?$/.exec(text);
    if (decimal && parts) return BigInt(parts[1] + (parts[2] || '').padEnd(Number(decimal[1]), '0'));
    const n = Number(text);
    return isNaN(n) ? null : n; // NaN has no order
  }

  // grid shows the rows around one position of a long table.
  function grid(v, first, row) {
    const total = first.total;
    const windows = new Map();
    const height = Math.min(tallest, total * rowHeight);
    const scaled = total * rowHeight > tallest;
    const table = h('table', { 'aria-rowcount': total + 1 });
    const pane = h('div', { class: 'pane' }, table);
    const scroll = h('div', { class: 'scroll fixed', tabindex: '0', role: 'region', 'aria-label': 'Rows; arrow keys, page keys, home and end move' },
      h('div', { class: 'tall', style: { height: height + 'px' } }, pane));
    S.clear(v.at, scroll, h('p', { class: 'end', 'aria-live': 'polite' }));
    const told = v.at.querySelector('.end');
    let visible = 20;
    let own = false; // the scroll position was set by us

    const place = () => {
      const room = Math.max(1, height - scroll.clientHeight);
      own = true;
      scroll.scrollTop = scaled ? v.first / Math.max(1, total - visible) * room : v.first * rowHeight;
      requestAnimationFrame(() => { own = false; });
    };
    const move = (to, jump) => {
      v.first = Math.max(0, Math.min(Math.round(to), Math.max(0, total - visible)));
      if (jump) place();
      draw();
    };
    // fill keeps a window. An answer has only so many bytes: of wide rows, others have the rest of the window.
    const fill = async (k, r) => {
      windows.set(k, r);
      losses(v, r);
      while (r.next < Math.min(total, (k + 1) * windowRows)) {
        const more = await S.ask('rows', { name: v.name, at: v.moment, raw: v.raw, from: r.next, n: (k + 1) * windowRows - r.next }, v.signal);
        if (more.next <= r.next) return;
        r.rows.push(...more.rows);
        if (r.at) r.at = more.at && r.at.concat(more.at);
        r.next = more.next;
        losses(v, more);
        draw();
      }
    };
    const need = async (k) => {
      if (windows.has(k) || k < 0 || k * windowRows >= total) return;
      windows.set(k, null);
      try {
        const r = await S.ask('rows', { name: v.name, at: v.moment, raw: v.raw, from: k * windowRows, n: windowRows }, v.signal);
        await fill(k, r);
        if (windows.size > 60) for (const old of windows.keys()) if (Math.abs(old - k) > 10 && windows.size > 40) windows.delete(old);
        draw();
      } catch (err) {
        windows.delete(k);
        if (!v.signal.aborted) wrong(v, err);
      }
    };
    const only = (i, cell) => h('tr', { 'aria-rowindex': i + 2 }, h('th', { scope: 'row', class: 'right dim' }, S.num(i)), cell);
    // whole is the line of position i of a window: a row that cannot be read at all has none.
    const whole = (w, i) => {
      const k = w.at ? w.at.indexOf(i) : i - w.from;
      if (w.rows[k]) return line(v, w.rows[k], w.at ? i : undefined, i + 2);
      return only(i, h('td', { colspan: v.columns.length, class: 'lost' }, i < w.next ? 'lost: the row cannot be read' : '…'));
    };
    const draw = () => {
      visible = Math.max(5, Math.floor((scroll.clientHeight - 56) / rowHeight));
      const to = Math.min(total, v.first + visible + 1);
      const lines = [];
      for (let i = v.first; i < to; i++) {
        const w = windows.get(Math.floor(i / windowRows));
        lines.push(w ? whole(w, i) : only(i, h('td', { colspan: v.columns.length, class: 'wait' }, '…')));
      }
      if (!table.tHead) table.append(head(v, sortLoaded), h('tbody', {}));
      table.tBodies[0].replaceChildren(...lines);
      told.textContent = 'Rows ' + S.num(v.first) + ' to ' + S.num(to - 1) + ' of ' + S.num(total);
      for (let k = Math.floor(v.first / windowRows); k * windowRows < to; k++) need(k);
    };
    // sortLoaded shows the rows that were read so far, sorted, as a list.
    const sortLoaded = (i) => {
      const got = [...windows.values()].filter(Boolean).sort((a, b) => a.from - b.from);
      list(v, { total, end: true, loaded: { from: v.first }, rows: got.flatMap((w) => w.rows), at: got.flatMap((w) => w.rows.map((_, k) => (w.at ? w.at[k] : undefined))),
        lost: v.lost, lost_more: v.lostMore, noticed: v.noticed, recovered: first.recovered })(i);
    };
    scroll.addEventListener('scroll', () => {
      if (own) return;
      const room = Math.max(1, height - scroll.clientHeight);
      move(scaled ? scroll.scrollTop / room * Math.max(0, total - visible) : scroll.scrollTop / rowHeight);
    });
    scroll.addEventListener('wheel', (e) => {
      if (!scaled || e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) return;
      e.preventDefault();
      move(v.first + Math.sign(e.deltaY) * 3, true);
    }, { passive: false });
    scroll.addEventListener('keydown', (e) => {
      const by = { ArrowDown: 1, ArrowUp: -1, PageDown: visible, PageUp: -visible, Home: -Infinity, End: Infinity }[e.key];
      if (by === undefined) return;
      e.preventDefault();
      move(by === Infinity ? total : by === -Infinity ? 0 : v.first + by, true);
    });
    v.sorted = undefined;
    v.goTo = (to) => move(to, true);
    fill(first.from / windowRows, first).catch((err) => { if (!v.signal.aborted) wrong(v, err); });
    v.first = Math.min(row, Math.max(0, total - 1));
    draw();
    place();
    const sizes = new ResizeObserver(draw);
    sizes.observe(scroll);
    v.signal.addEventListener('abort', () => sizes.disconnect());
  }
})(window.stoa);
