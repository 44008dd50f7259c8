//go:build interop

package kudu

import (
	"os"
	"path/filepath"
	"testing"
)

// serverFlags are the flags in which the servers of these tests differ.
var serverFlags = map[string][]string{
	"file": {"--enable_log_gc=false", "--default_composite_key_index_block_size_bytes=512",
		"--deltafile_default_block_size=1024", "--tablet_bloom_block_size=1024"},
	"log": {"--enable_log_gc=true", "--log_segment_size_mb=1", "--log_min_segments_to_retain=1",
		"--log_compression_codec=ZLIB", "--rowset_metadata_store_keys=true"},
}

// TestDirLives: a server goes through every kind of table and change; then stoa reads a copy of its directories,
// and every table at every moment must be what Kudu's client saw: schema, rows, and their
// order.
func TestDirLives(t *testing.T) {
	for _, manager := range []string{"file", "log"} {
		t.Run(manager, func(t *testing.T) {
			t.Parallel()
			s := newDirServer(t, manager)
			s.split = manager == "log"
			s.startWith(serverFlags[manager]...)
			l := lead(s)
			l.ask()
			running := copyDir(t, s.dir+"/tserver", s.dir+"/copies/running/tserver")
			s.stop()
			stopped := copyDir(t, s.dir+"/tserver", s.dir+"/copies/stopped/tserver")
			t.Logf("COUNT %s: %v", t.Name(), l)
			blocks := map[string]int{}
			for _, list := range s.blocks() {
				for _, b := range list {
					blocks[b.Kind]++
				}
			}
			t.Logf("COUNT %s: blocks %v", t.Name(), blocks)
			for _, kind := range []string{"column", "undo", "redo", "bloom", "adhoc-index"} {
				if blocks[kind] == 0 {
					t.Errorf("this life left no block of kind %s", kind)
				}
			}
			l.keep(t, s.dir+"/copies")
			if d := os.Getenv("STOA_INTEROP_KEEP"); d != "" {
				os.RemoveAll(filepath.Join(d, manager))
				for _, x := range []string{"copies", "master"} {
					copyDir(t, filepath.Join(s.dir, x), filepath.Join(d, manager, x))
				}
			}
			for _, c := range []string{stopped, running} {
				t.Run(filepath.Base(filepath.Dir(c)), func(t *testing.T) { l.checkAll(t, c) })
			}
			t.Run("missing", func(t *testing.T) { l.checkMissing(t, s, stopped) })
			if manager == "file" { // a block is a file, and easy to find
				t.Run("replicas", func(t *testing.T) { l.checkReplicas(t, s, stopped) })
				t.Run("keys", func(t *testing.T) { l.checkKeys(t, s, stopped) })
			}
			t.Run("restarted", func(t *testing.T) { // a starting server rewrites its log
				s.t = t
				s.startWith(serverFlags[manager]...)
				rows, err := s.scan("types")
				if d := difference(rows, l.Tables["types"].Latest); err != nil || d != "" {
					t.Fatalf("Kudu itself has another table now: %v %s", err, d)
				}
				s.stop()
				l.checkAll(t, copyDir(t, s.dir+"/tserver", s.dir+"/copies/restarted/tserver"))
			})
		})
	}
}
