package kudu

import (
	"bytes"
	"encoding/binary"
	"testing"

	"stoa/internal/sum"
)

// AsLarge makes ls look only at the ends of logs, as it does of those that are large.
func AsLarge(t testing.TB) {
	glanceBytes = 0
	t.Cleanup(func() { glanceBytes = 1 << 20 })
}

// Unpack is for the tests from outside.
var Unpack = unpack

// WithoutUndo is a superblock's file in which a rowset no longer names the UNDO block id: its field has a number that nobody knows.
func WithoutUndo(t testing.TB, file []byte, id uint64) []byte {
	t.Helper()
	out := bytes.Clone(file)
	// undo_deltas (5) { block (2) { id (1) } }
	want := binary.LittleEndian.AppendUint64([]byte{5<<3 | 2, 13 - 2, 2<<3 | 2, 9, 1<<3 | 1}, id)
	at := bytes.LastIndex(out, want)
	if at < 0 {
		t.Fatal("the superblock does not name the block so")
	}
	out[at] = 15<<3 | 2
	reseal(out)
	return out
}

// Renamed is a superblock's file with other ids, as long as those that it has.
func Renamed(file []byte, ids map[string]string) []byte {
	out := bytes.Clone(file)
	for was, is := range ids {
		out = bytes.ReplaceAll(out, []byte(was), []byte(is))
	}
	reseal(out)
	return out
}

// reseal makes the checksum of a superblock's message right.
func reseal(out []byte) {
	last := binary.LittleEndian.Uint32(out[pbcHeadV2:])
	body := out[pbcHeadV2+8+int(last)+4:] // behind the supplementary header
	n := int(binary.LittleEndian.Uint32(body))
	binary.LittleEndian.PutUint32(body[8+n:], sum.CRC32C(body[8:8+n]))
}

// WithState is a superblock's file with another tablet_data_state.
func WithState(t testing.TB, file []byte, state TabletState) []byte {
	t.Helper()
	out := bytes.Clone(file)
	// tablet_data_state (10): READY; it follows the schema_version (9)
	at := bytes.LastIndex(out, []byte{9 << 3, 0, 10 << 3, byte(TabletReady)})
	if at < 0 {
		t.Fatal("the superblock does not say its state so")
	}
	out[at+3] = byte(state)
	reseal(out)
	return out
}
