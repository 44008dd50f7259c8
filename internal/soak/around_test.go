package soak

import (
	"os"
	"path/filepath"
	"strings"
)

// around adds the cells that damage between and after the pages may cost. All other cells must be read. false: unknown.
func (s *soak) around(w *writer, l *layout, sp span, t *touched, file string, opts map[string]string) bool {
	if sp.from >= size(sp.file) && (w.typed && w.name != "cfile" || w.ext == ".jsonl") { // bytes were appended
		if strings.HasPrefix(w.name, "trevni") && opts["checksum"] == "null" && len(l.places) > 0 {
			// nothing shows that they were not appended to the last column, which does not end where the file does
			for _, rows := range l.groups {
				t.add(rows, l.places[len(l.places)-1].column)
			}
		}
		return true
	}
	switch w.name {
	case "cfile":
		return aroundCFile(w, l, sp, t, opts)
	case "redfile":
		return aroundRedFile(l, sp, t, opts)
	case "trevni", "trevni-avro":
		return aroundTrevni(l, sp, t, opts)
	case "arrow":
		return aroundArrow(l, sp)
	case "carbon":
		return w == carbonTable && sp.gone && aroundCarbonTable(file, sp)
	}
	return false
}

func size(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		panic(err)
	}
	return info.Size()
}

// aroundCFile: blocks and table.json repeat the contents of header, footer and indexes, and the files those of
// table.json. Without checksums a block is located only by its neighbours.
func aroundCFile(w *writer, l *layout, sp span, t *touched, opts map[string]string) bool {
	if filepath.Base(sp.file) == "table.json" || w.summed(opts) {
		return true
	}
	for _, p := range l.places {
		if p.file == sp.file {
			t.add(p.rows, p.column)
		}
	}
	return true
}

// aroundRedFile: damage between the pages of a row group may cost it, or one of its columns, and in generation A also
// everything after them; damage to the file's metadata costs nothing if there are sync blocks.
func aroundRedFile(l *layout, sp span, t *touched, opts map[string]string) bool {
	// changed metadata may still be consistent
	if opts["sync"] == "0" || opts["crc"] == "false" && sp.from >= l.last(sp.file) && !sp.gone {
		return false
	}
	for g, rows := range l.groups {
		from, _ := l.extent(sp.file, g)
		to, _ := l.extent(sp.file, g+1)
		if to == 0 {
			to = size(sp.file)
		}
		if from > 0 && from < sp.to && sp.from < to &&
			(sp.gone || sp.from < l.end(sp.file, g) || opts["generation"] == "A") {
			t.add(rows, -1)
		}
	}
	return true
}

// extent returns the byte range of the pages of row group g in a file; 0 and 0 if it has none.
func (l *layout) extent(file string, g int) (from, to int64) {
	for _, p := range l.places {
		if p.file == file && p.group == g {
			if to == 0 || p.from < from {
				from = p.from
			}
			to = max(to, p.to)
		}
	}
	return from, to
}

// last returns where the pages of a file end.
func (l *layout) last(file string) (to int64) {
	for _, p := range l.places {
		if p.file == file {
			to = max(to, p.to)
		}
	}
	return to
}

func (l *layout) end(file string, g int) int64 { _, to := l.extent(file, g); return to }

// aroundTrevni: descriptors precede the blocks of their column; the bytes before all columns are not repeated anywhere.
// Without checksums, a column at its stated offset proves that the columns before it were not shifted by inserted or
// removed bytes. Nothing follows the last column, so blocks that only a following column would prove are not returned.
func aroundTrevni(l *layout, sp span, t *touched, opts map[string]string) bool {
	prev, last := int64(0), len(l.places)-1
	for _, p := range l.places {
		if sp.from < p.from && prev < sp.to {
			if prev == 0 {
				return false
			}
			t.add(l.groups[p.group], p.column)
			if opts["checksum"] == "null" && p.column == l.places[last].column {
				t.add(l.groups[p.group], -1)
			}
		}
		prev = p.to
	}
	return true
}

// aroundArrow: damage to the schema may cost everything, unless only the end of the file is damaged.
func aroundArrow(l *layout, sp span) bool {
	return len(l.places) > 0 && sp.from >= l.places[0].from
}

// aroundCarbonTable: data files repeat the contents of indexes, segment files and the schema of a table.
func aroundCarbonTable(dir string, sp span) bool {
	base := filepath.Base(sp.file)
	return sp.from == 0 && (strings.Contains(base, ".carbonindex") || strings.HasSuffix(base, ".segment") ||
		base == "schema")
}

// after adds the pages of p's chunk that follow p.
func (l *layout) after(p place, t *touched) {
	for _, q := range l.places {
		if q.file == p.file && q.group == p.group && q.column == p.column && q.from > p.from {
			t.add(q.rows, q.column)
		}
	}
}
