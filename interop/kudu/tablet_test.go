//go:build interop

package kudu

import (
	"fmt"
	"slices"
	"testing"
)

// TestTablets replaces Kudu's files with ours: all columns, the bloom filter and the ad-hoc index of tables with
// every type of key. Then the real server must serve our rows, find every key of ours and no other.
func TestTablets(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	v := valueColumns()
	type job struct {
		table
		version int
		twoWay  bool // bloom and ad-hoc index in version 1, too
	}
	var jobs []job
	for i, version := range []int{2, 1} {
		suffix := fmt.Sprintf("_v%d", version)
		for j, x := range keyTables(suffix, 900, v[(7*i)%len(v)], v[(11+5*i)%len(v)]) {
			jobs = append(jobs, job{x, version, j%2 == 0})
		}
		k := column{Name: "k", Type: "INT32", Key: true, BlockSize: 512, Enc: "BIT_SHUFFLE"}
		jobs = append(jobs, job{newTable("wide"+suffix, 3000, 77+i, append([]column{k}, v...)...), version, true})
		k = column{Name: "k", Type: "STRING", Key: true, BlockSize: 512, Enc: "PREFIX_ENCODING", Comp: "LZ4"}
		jobs = append(jobs, job{newTable("long_string"+suffix, 5000, 78+i, k, v[0], v[5]), version, false})
		k0, k1 := column{Name: "k0", Type: "STRING", Key: true, BlockSize: 1024},
			column{Name: "k1", Type: "INT64", Key: true}
		jobs = append(jobs, job{newTable("long_pair"+suffix, 5000, 79+i, k0, k1, v[3], v[8]), version, true})
	}
	// one more, whose bloom filter will be wrong
	bad := newTable("wrong_bloom", 200, 3, column{Name: "k", Type: "INT32", Key: true},
		column{Name: "v", Type: "INT64"})
	jobs = append(jobs, job{bad, 2, false})

	var tables []table
	for _, j := range jobs {
		tables = append(tables, j.table)
	}
	blocks := load(s, tables)
	files, bytes := 0, 0
	for n, j := range jobs {
		for _, b := range blocks[j.name] {
			o := fileOptions{Version: j.version}
			var file []byte
			var err error
			switch b.Kind {
			case "column":
				i := slices.IndexFunc(j.cols, func(c column) bool { return c.Name == b.Column })
				c := j.cols[i]
				c.Enc = b.Encoding // Kudu's choice for "auto"
				if c.Comp == "" {
					c.Comp = "NO_COMPRESSION"
				}
				if c.Key && len(j.keys()) == 1 {
					o.ValueIndex = true
				}
				o.IndexBlock = []int{256, 0, 1024}[(i+n)%3]
				file, err = writeColumn(c, o, columnOf(j.b, i))
			case "bloom":
				keys := j.encodedKeys(j.b)
				if j.name == bad.name {
					keys = j.encodedKeys(j.c)
				}
				if !j.twoWay {
					o.Version = 2
				} else {
					o.IndexBlock = 128 // and filters of 512 bytes
				}
				file, err = writeBloom(keys, o)
			case "adhoc-index":
				if !j.twoWay {
					o.Version = 2
				} else {
					o.IndexBlock = 512 // and blocks of 512 bytes
				}
				file, err = writeAdhocIndex(j.encodedKeys(j.b), o)
			default:
				continue
			}
			if err != nil {
				t.Errorf("%s: %s %s: our writer: %v", j.name, b.Kind, b.Column, err)
				continue
			}
			files++
			bytes += len(file)
			s.replace(b, file)
		}
	}
	s.start()
	var names []string
	for _, x := range tables[:len(tables)-1] {
		names = append(names, x.name)
	}
	if err := s.ksck(names...); err != nil {
		t.Errorf("ksck: %v", err)
	}
	good, rows := 0, 0
	for _, x := range tables[:len(tables)-1] {
		wrong := x.judge(s)
		report(t, x.name, wrong)
		if len(wrong) == 0 {
			good++
			rows += len(x.b)
		}
	}
	t.Logf("COUNT %s: %d of %d tables with our files served as meant: scan, 60 ranges, every key found, no "+
		"other found (%d rows, %d files of ours, %d bytes)", t.Name(), good, len(names), rows, files, bytes)
	if wrong := bad.judge(s); !has(wrong, "insert of present keys") {
		t.Errorf("a bloom filter without the keys went unnoticed: %q", wrong)
	} else {
		t.Logf("wrong_bloom: noticed: %s", wrong[0])
	}

	if good < len(names) {
		return // duplicate rows would crash the server
	}
	// Kudu now merges our row sets with the rows inserted just before; the tables must not change.
	before := map[string][]string{}
	for _, n := range names {
		before[n], _ = s.scan(n)
	}
	s.flush("rows", "num_rowsets_on_disk", 2, names...)
	s.compact(names...)
	same := 0
	for _, n := range names {
		after, err := s.scan(n)
		if err != nil {
			t.Errorf("%s: after Kudu's compaction: %v", n, err)
		} else if d := firstDifference(after, before[n]); d != "" {
			t.Errorf("%s: after Kudu's compaction: %s", n, d)
		} else {
			same++
		}
	}
	t.Logf("COUNT %s: %d of %d tables unchanged after Kudu compacted our row sets into its own", t.Name(), same,
		len(names))
}
