//go:build interop

package kudu

import (
	"slices"
	"strings"
	"testing"
)

// TestHarnessWithKudusOwnFiles tests the tablet side of the harness without our writer: each table has a twin
// that Kudu fills with the rows B; the twin's blocks replace the table's. Everything must then hold.
// It must not hold where something was left out or broken.
func TestHarnessWithKudusOwnFiles(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	var tables, all []table
	twins := map[string]table{}
	add := func(list []table) {
		for _, x := range list {
			twin := x
			twin.name, twin.a = x.name+"_twin", x.b
			twins[x.name] = twin
			tables, all = append(tables, x), append(all, x, twin)
		}
	}
	v := valueColumns()
	add(keyTables("", 300, v[0], v[3], v[len(v)-1]))
	pair := func(name string) table {
		return newTable(name, 300, 42, column{Name: "k0", Type: "INT32", Key: true, BlockSize: 512},
			column{Name: "k1", Type: "STRING", Key: true, BlockSize: 512},
			column{Name: "v", Type: "INT64", BlockSize: 512})
	}
	single := func(name string) table {
		return newTable(name, 300, 42, column{Name: "k0", Type: "INT32", Key: true, BlockSize: 512},
			column{Name: "v", Type: "INT64", BlockSize: 512})
	}
	bad := []table{single("bad_bloom"), single("bad_value"), single("bad_byte"), single("bad_column_order"),
		pair("bad_index"), single("bad_key_column"), single("loose_bloom")}
	good := len(tables)
	add(bad)
	everything := single("loose_bloom_keys")
	everything.a = slices.Concat(everything.a, everything.b, everything.c)
	all = append(all, everything)
	blocks := load(s, all)
	at := func(name, kind, col string) block {
		for _, b := range blocks[name] {
			if b.Kind == kind && b.Column == col {
				return b
			}
		}
		t.Fatalf("%s has no %s %s", name, kind, col)
		panic("")
	}
	for _, x := range tables {
		for _, b := range blocks[x.name] {
			if x.name == "bad_bloom" && b.Kind == "bloom" || x.name == "bad_index" && b.Kind == "adhoc-index" ||
				x.name == "bad_key_column" && b.Kind == "column" && b.Column == "k0" {
				continue // stays Kudu's own, of the rows A
			}
			from := twins[x.name].name
			if x.name == "loose_bloom" && b.Kind == "bloom" {
				from = everything.name // a filter that passes everything is not wrong, but useless
			}
			s.replace(b, s.read(at(from, b.Kind, b.Column)))
		}
	}
	b := at("bad_byte", "column", "v")
	file := s.read(b)
	file[len(file)/3] ^= 0x10
	s.replace(b, file)

	s.start()
	var goods []string
	for _, x := range tables[:good] {
		goods = append(goods, x.name)
	}
	if err := s.ksck(goods...); err != nil {
		t.Errorf("ksck: %v", err)
	}
	for _, x := range tables[:good] {
		report(t, x.name, x.judge(s))
	}
	t.Logf("%d tables with the blocks of their twins hold", good)

	// Now the cases that must be noticed.
	find := func(name string) table {
		for _, x := range tables {
			if x.name == name {
				return x
			}
		}
		panic(name)
	}
	expect := func(name, kind string, wrong []string) {
		t.Helper()
		if !has(wrong, kind) {
			t.Errorf("%s: the harness did not notice; it said %q", name, wrong)
		} else {
			t.Logf("%s: noticed: %.250s", name, strings.Join(wrong, " | "))
		}
	}
	expect("bad_bloom", "insert of present keys", find("bad_bloom").judge(s))
	expect("bad_index", "insert of present keys", find("bad_index").judge(s))
	expect("bad_key_column", "scan", find("bad_key_column").judge(s))
	x := find("bad_value")
	x.b = append([][]cell{}, x.b...)
	x.b[123] = append([]cell{}, x.b[123]...)
	x.b[123][1] = x.b[123][1].(int64) ^ 1
	expect("bad_value", "scan", x.judge(s))
	x = find("bad_column_order")
	x.b = append([][]cell{}, x.b...)
	x.b[7], x.b[8] = x.b[8], x.b[7]
	expect("bad_column_order", "scan", x.judge(s))
	expect("loose_bloom", "bloom", find("loose_bloom").judge(s))
	if err := s.ksck("bad_byte"); err == nil || !strings.Contains(err.Error(), "orruption") {
		t.Errorf("bad_byte: ksck says %v", err)
	} else {
		t.Logf("bad_byte: noticed: ksck: %.300s", strings.ReplaceAll(err.Error(), "\n", " | "))
	}
}
