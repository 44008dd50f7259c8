package kudufs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/option"
)

// WriteOptions are the options of Create.
type WriteOptions struct {
	Table      string   // the table's name; "" is that of the Kudu table
	TableID    string   // 32 hexadecimal digits; "" is that of the Kudu table, else made of the name
	Key        []string // the primary key; nil is that of the Kudu table
	Buckets    int      // of the hash of the key; 0: as the Kudu table was divided, else one tablet
	Server     string   // UUID of the tablet server; "" is the first peer, else made of the table's id
	Peers      []string // UUID@HOST:PORT of each replica; nil is the server alone, at 127.0.0.1:7050
	Time       int64    // when the table was created, in milliseconds since 1970; 0 is now
	Manager    string   // the block manager: "file" or "log"; "" is file
	RowSetSize int64    // size at which a rowset is written, in bytes; 0 is 64 MiB
	FirstBlock int64    // the number of the first block; 0 is 1
}

const (
	defaultRowSet  = 64 << 20
	defaultAddress = "127.0.0.1:7050"
	maxBuckets     = 10_000
)

var writing = option.Table[WriteOptions]{Format: "kudu-fs", For: "writing", Check: (*WriteOptions).check,
	Options: []option.Option[WriteOptions]{
		option.Text("table", "NAME", "the table's name (default: that of the Kudu table)",
			func(o *WriteOptions) *string { return &o.Table }),
		option.Text("table-id", "ID", "the table's id, 32 hexadecimal digits (default: that of the Kudu table, else "+
			"made of the name)", func(o *WriteOptions) *string { return &o.TableID }),
		option.List("key", "COLUMN,…", "the primary key (default: that of the Kudu table)",
			func(o *WriteOptions) *[]string { return &o.Key }),
		option.Int("buckets", "N", "tablets by hash of the primary key (default: as the Kudu table was divided, else "+
			"one tablet)", func(o *WriteOptions) *int { return &o.Buckets }, 2, maxBuckets),
		option.Text("server", "UUID", "the tablet server, 32 hexadecimal digits (default: the first peer, else made "+
			"of the table's id)", func(o *WriteOptions) *string { return &o.Server }),
		option.List("peers", "UUID@HOST:PORT,…", "the servers with replicas (default: the one that is written, "+
			"at "+defaultAddress+")", func(o *WriteOptions) *[]string { return &o.Peers }),
		option.Int("time", "MS", "when the table was created, in milliseconds since 1970 (default: now)",
			func(o *WriteOptions) *int64 { return &o.Time }, 1, 1<<52),
		option.Pick("block-manager", "of the directories: each block is a file, or part of a log container "+
			"(default file)", func(o *WriteOptions) *string { return &o.Manager }, fs.FileManager, fs.LogManager),
		option.Size("rowset-size", "write a rowset when its rows take so much (default 64MiB)",
			func(o *WriteOptions) *int64 { return &o.RowSetSize }, 1, 1<<40),
		option.Int("first-block", "N", "the number of the first block (default 1)",
			func(o *WriteOptions) *int64 { return &o.FirstBlock }, 1, 1<<47),
	}}

// Strings and Formats implement format.Options.
func (o WriteOptions) Strings() map[string]string { return writing.Strings(&o) }
func (o WriteOptions) Formats() []string          { return []string{writing.Format} }

func (o *WriteOptions) check() error {
	for _, id := range []string{o.TableID, o.Server} {
		if id != "" && !isUUID(id) {
			return fault.Invalidf("%s: an id has 32 hexadecimal digits", id)
		}
	}
	_, err := o.peers()
	return err
}

// peers are the replicas' servers; nil if none is named.
func (o *WriteOptions) peers() (out []meta.Peer, err error) {
	for _, one := range o.Peers {
		id, address, _ := strings.Cut(one, "@")
		if _, port, err := net.SplitHostPort(address); err != nil || !isPort(port) || !isUUID(id) {
			return nil, fault.Invalidf("peers=%s: expected UUID@HOST:PORT", one)
		}
		out = append(out, meta.Peer{UUID: strings.ToLower(id), Voter: true, Address: address})
	}
	if server := strings.ToLower(o.Server); out != nil && server != "" &&
		!slices.ContainsFunc(out, func(p meta.Peer) bool { return p.UUID == server }) {
		return nil, fault.Invalidf("peers: server %s, whose directories are written, is not among them", server)
	}
	return out, nil
}

// moment is when the table was created.
func (o *WriteOptions) moment() time.Time {
	if o.Time == 0 {
		return time.Now()
	}
	return time.UnixMilli(o.Time)
}

func (o *WriteOptions) rowSet() int64 { return cmp.Or(o.RowSetSize, defaultRowSet) }

// isUUID reports whether s is an id as Kudu writes it, in upper or lower case.
func isUUID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 16
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// madeID derives an id from words.
func madeID(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:16])
}

var _ format.Options = WriteOptions{}
