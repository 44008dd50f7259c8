package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/internal/pb"
	"stoa/internal/sum"
)

// unclaimedRows returns the rows that a report counts in blocks that no superblock names, in all and by block.
func unclaimedRows(t *testing.T, out string) (all, each int64) {
	t.Helper()
	var doc struct {
		Rows    int64 `json:"rows_unclaimed"`
		Unnamed []struct{ Rows *int64 }
	}
	b, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil || json.Unmarshal(b, &doc) != nil {
		t.Fatal(err, string(b))
	}
	for _, u := range doc.Unnamed {
		if u.Rows != nil {
			each += *u.Rows
		}
	}
	return doc.Rows, each
}

// TestRescueCountsUnclaimedRows: of a table of which only blocks are left, the report counts the rows that a client
// read, in no table, and once if there are two copies of them; the rows that deletes have removed are in the blocks,
// too.
func TestRescueCountsUnclaimedRows(t *testing.T) {
	cluster, rows := deadCluster(t)
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, "all"), cluster)
	total := int64(0)
	for _, n := range rows {
		total += n
	}
	for _, table := range []string{"ck", "d_rowset"} {
		if testing.Short() && table == "d_rowset" {
			continue
		}
		tablet := onlyTablet(t, filepath.Join(dir, "all")+"#"+table)
		for _, copies := range []bool{false, true} {
			files := maps.Clone(cluster)
			maps.DeleteFunc(files, func(name string, _ []byte) bool {
				return strings.HasPrefix(name, "master/") || strings.Contains(name, tablet)
			})
			if copies {
				twin(func(map[string][]byte) {})(files)
			}
			in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
			writeFiles(t, in, files)
			r, status := rescueOf(t, out, in)
			written := int64(0)
			for _, x := range r.Tables {
				if x.Rows != nil {
					written += *x.Rows
				}
			}
			all, each := unclaimedRows(t, out)
			if status != 3 || all != each || written != total-rows[table] || all < rows[table] ||
				table != "d_rowset" && all != rows[table] {
				t.Errorf("%s, copies %t: status %d, %d rows written and %d in blocks of no table, of %d", table, copies,
					status, written, all, total)
			}
			text, _ := os.ReadFile(filepath.Join(out, "report.txt"))
			flat := strings.Join(strings.Fields(string(text)), " ")
			if !strings.Contains(flat, "blocks that no table claims have about") {
				t.Errorf("%s: the text does not say so: %s", table, text)
			}
			if strings.Contains(string(text), "replicas and copies of them: ") != copies {
				t.Errorf("%s, copies %t: the text says otherwise: %s", table, copies, text)
			}
		}
	}
}

// onlyTablet returns the tablet of a table that has one.
func onlyTablet(t *testing.T, table string) string {
	t.Helper()
	var tables []struct{ Tablets []struct{ Tablet string } }
	if err := json.Unmarshal([]byte(must(t, "census", table, "-f", "json")), &tables); err != nil || len(tables) != 1 ||
		len(tables[0].Tablets) != 1 {
		t.Fatal(table, err)
	}
	return tables[0].Tablets[0].Tablet
}

// TestRescueOfEarlierSuperblock: the only superblock of a tablet is of an earlier copy of the server, and the blocks
// that were flushed since are in another copy. Neither is the table called whole, nor are its losses exact; rows
// written, lost and in blocks of no table are those of the client or more. Tables with other columns are whole.
func TestRescueOfEarlierSuperblock(t *testing.T) {
	cluster, rows := deadCluster(t)
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, "all"), cluster)
	tablet := onlyTablet(t, filepath.Join(dir, "all")+"#d_raw")
	for _, log := range []bool{true, false} {
		files := map[string][]byte{}
		for name, b := range cluster {
			rest, ok := strings.CutPrefix(name, "tserver/")
			if !ok || !log && strings.Contains(name, "/wals/"+tablet) {
				continue
			}
			if files["old/"+rest] = b; strings.HasPrefix(rest, "data/") {
				files["new/"+rest] = b
			}
		}
		name := "old/wal/tablet-meta/" + tablet
		files[name] = earlierSuperblock(t, files[name])
		in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
		writeFiles(t, in, files)
		r, status := rescueOf(t, out, in)
		blocks, _ := unclaimedRows(t, out)
		if status != 3 || blocks == 0 {
			t.Errorf("status %d, %d rows in blocks of no table", status, blocks)
		}
		for _, x := range r.Tables {
			switch {
			case x.Table == "d_raw" && (x.Whole || x.Exact || *x.Rows+*x.Lost+blocks < rows["d_raw"]):
				t.Errorf("log %t: d_raw: whole %t, exact %t, %d rows, %d lost, %d in blocks", log, x.Whole, x.Exact,
					*x.Rows, *x.Lost, blocks)
			case x.Table == "ck" && (!x.Whole || !x.Exact || *x.Rows != rows["ck"]):
				t.Errorf("log %t: ck: whole %t, %v", log, x.Whole, x.Why)
			}
		}
	}
}

// earlierSuperblock returns a superblock as it was before its last rowset was flushed.
func earlierSuperblock(t *testing.T, file []byte) []byte {
	t.Helper()
	const durable, rowset = 3, 6 // fields of TabletSuperBlockPB
	at := 16 + 8 + int(binary.LittleEndian.Uint32(file[16:])) + 4
	var fields [][]byte
	last := -1
	for rest := file[at+8 : len(file)-4]; len(rest) > 0; {
		tag, n := binary.Uvarint(rest)
		v, k := binary.Uvarint(rest[n:])
		if n += k; tag&7 == 2 {
			n += int(v)
		}
		switch field := rest[:n:n]; tag >> 3 {
		case durable:
			fields = append(fields, pb.AppendInt(nil, durable, int64(v)-1))
		case rowset:
			last = len(fields)
			fallthrough
		default:
			fields = append(fields, field)
		}
		rest = rest[n:]
	}
	if last < 0 {
		t.Fatal("the superblock has no rowset")
	}
	body := bytes.Join(slices.Delete(fields, last, last+1), nil)
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	out = append(binary.LittleEndian.AppendUint32(out, sum.CRC32C(out)), body...)
	return append(file[:at:at], binary.LittleEndian.AppendUint32(out, sum.CRC32C(body))...)
}

// TestRescueOfTablesInTheCatalogueAlone: of all tables, only the catalogue and blocks are left. Rows are given to one
// of the tables with equal columns, with an error that says so, and are not counted as unclaimed as well; a table with
// other columns has those that a client read.
func TestRescueOfTablesInTheCatalogueAlone(t *testing.T) {
	cluster, rows := deadCluster(t)
	maps.DeleteFunc(cluster, func(name string, _ []byte) bool {
		return strings.HasPrefix(name, "tserver/wal/") && name != "tserver/wal/instance"
	})
	cluster["tserver/wal/tablet-meta/none"], cluster["tserver/wal/wals/none"] = nil, nil
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	writeFiles(t, in, cluster)
	r, status := rescueOf(t, out, in)
	written, mixed := 0, false
	for _, x := range r.Tables {
		switch x.Table {
		case "d_raw", "d_minor", "d_major", "d_rowset", "d_wal":
			if x.Rows != nil {
				written++
				mixed = strings.Contains(strings.Join(x.Why, " "), "kudu.carve.mixed")
			}
		case "ck", "part", "key_int64":
			if x.Rows == nil || *x.Rows != rows[x.Table] {
				t.Errorf("%s: %v rows, want %d", x.Table, x.Rows, rows[x.Table])
			}
		}
	}
	if all, each := unclaimedRows(t, out); status != 3 || written != 1 || !mixed || all != 0 || each != 0 {
		t.Errorf("status %d, %d tables have the rows, mixed %t, %d rows unclaimed", status, written, mixed, all)
	}
}

// TestRescueOfUnreadableUnclaimedBlocks: the only superblock of a table is of an earlier time, and its newer blocks are
// damaged at the end, or one of them is gone. The status is 3, something is unclaimed, and the table is neither whole
// nor are its losses exact.
func TestRescueOfUnreadableUnclaimedBlocks(t *testing.T) {
	cluster, _ := deadCluster(t)
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, "all"), cluster)
	tablet := onlyTablet(t, filepath.Join(dir, "all")+"#d_raw")
	maps.DeleteFunc(cluster, func(name string, _ []byte) bool {
		return strings.HasPrefix(name, "master/") || strings.Contains(name, "/wals/") && strings.Contains(name, tablet)
	})
	name := "tserver/wal/tablet-meta/" + tablet
	newer := newBlocks(t, cluster[name], cluster)
	cluster[name] = earlierSuperblock(t, cluster[name])
	for how, change := range map[string]func(i int, b []byte) []byte{
		"cut":  func(_ int, b []byte) []byte { return b[:len(b)-5] },
		"half": func(_ int, b []byte) []byte { return b[:len(b)/2] },
		"gone": func(i int, b []byte) []byte {
			if i == 5 {
				return nil
			}
			return b
		},
	} {
		files := maps.Clone(cluster)
		for i, block := range newer {
			if files[block] = change(i, files[block]); files[block] == nil {
				delete(files, block)
			}
		}
		in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
		writeFiles(t, in, files)
		r, status := rescueOf(t, out, in)
		if status != 3 || r.Whole || !slices.ContainsFunc(r.Unnamed,
			func(u struct{ State, Tablet string }) bool { return u.State == "unclaimed" }) {
			t.Errorf("%s: status %d, %v", how, status, r.Unnamed)
		}
		for _, x := range r.Tables {
			if x.Table == "d_raw" && (x.Whole || x.Exact) {
				t.Errorf("%s: d_raw: whole %t, exact %t", how, x.Whole, x.Exact)
			}
		}
	}
}

// newBlocks returns the files of the columns of a superblock's last rowset.
func newBlocks(t *testing.T, superblock []byte, files map[string][]byte) (out []string) {
	t.Helper()
	older := earlierSuperblock(t, slices.Clone(superblock))
	for name := range files {
		id, err := strconv.ParseUint(filepath.Base(name), 10, 64)
		if err != nil || !strings.Contains(name, "/data/") || !bytes.HasPrefix(files[name], []byte("kuducfl")) {
			continue
		}
		ref := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, id) // BlockIdPB.id
		if bytes.Contains(superblock, ref) && !bytes.Contains(older, ref) {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	if len(out) < 12 {
		t.Fatalf("%d blocks", len(out))
	}
	return out
}

// TestVerifyOfUnclaimedBlocks: a block that no superblock names is an error of verify if ls lists rows of a column in
// it, or that it cannot be read, unless it is expected.
func TestVerifyOfUnclaimedBlocks(t *testing.T) {
	cluster, _ := deadCluster(t)
	var blocks []string
	for name := range cluster {
		if _, err := strconv.ParseUint(filepath.Base(name), 10, 64); err == nil && strings.HasPrefix(name, "tserver/") {
			blocks = append(blocks, name)
		}
	}
	slices.Sort(blocks)
	in := t.TempDir()
	writeFiles(t, in, cluster)
	r := rand.New(rand.NewPCG(20, 7))
	seen := map[string]int{}
	for range 24 {
		from := blocks[r.IntN(len(blocks))]
		b := slices.Clone(cluster[from])
		switch r.IntN(3) {
		case 0:
			b = b[:len(b)-1-r.IntN(len(b)-1)]
		case 1:
			b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
		}
		id, err := strconv.ParseUint(filepath.Base(from), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		stray := filepath.Join(in, filepath.Dir(from), fmt.Sprintf("%016d", id+5_000_000))
		if err := os.WriteFile(stray, b, 0o666); err != nil {
			t.Fatal(err)
		}
		var list []struct{ Kind, Rows, Problem string }
		_, said, _ := told(t, "ls --unnamed -f json "+in)
		if err := json.Unmarshal([]byte(said), &list); err != nil || len(list) != 1 {
			t.Fatal(said, err)
		}
		want, what := cli.StatusFine, list[0].Kind
		if what == "" && list[0].Problem != "" || what == "column file" && list[0].Rows != "0" {
			want = cli.StatusDamage
		}
		seen[what]++
		got, out, errs := told(t, "verify "+in)
		expected, more, _ := told(t, "verify "+in+" --source-opt unclaimed=true")
		if got != want || expected != cli.StatusFine {
			t.Errorf("%s, %d of %d bytes, %v: status %d, want %d; expected %d: %s%s%s", from, len(b),
				len(cluster[from]), list[0], got, want, expected, out, errs, more)
		}
		if err := os.Remove(stray); err != nil {
			t.Fatal(err)
		}
	}
	if seen[""] < 3 || seen["column file"] < 3 {
		t.Errorf("%v", seen)
	}
}
