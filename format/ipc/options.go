package ipc

import "stoa/format/option"

// Compress is the compression of buffers.
type Compress string

const (
	CompressNone Compress = "none" // the default
	CompressLZ4  Compress = "lz4"
	CompressZstd Compress = "zstd"
)

// WriteOptions are the options for writing, for stoa.CreateOptions.Typed. The zero value is the default of each.
type WriteOptions struct {
	Stream      *bool    // a stream, or a file; nil: by the name, .arrows is a stream
	Compression Compress // of the buffers of each batch
}

var writing = option.Table[WriteOptions]{Format: "arrow", For: "writing", Options: []option.Option[WriteOptions]{
	option.Tri("stream", "write a stream, or a file (default: by the name, .arrows is a stream)",
		func(o *WriteOptions) **bool { return &o.Stream }),
	option.Pick("compression", "compress the buffers of each batch (default none)",
		func(o *WriteOptions) *Compress { return &o.Compression }, CompressNone, CompressLZ4, CompressZstd),
}}

// Strings returns the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string { return writing.Strings(&o) }

// Formats returns the names of the formats that the options are for.
func (WriteOptions) Formats() []string { return []string{writing.Format} }

// ReadOptions are the options for reading, for stoa.OpenOptions.Typed. The zero value is the default of each.
type ReadOptions struct {
	Partial bool // accept a stream without end mark, for writers that omit it
}

var reading = option.Table[ReadOptions]{Format: "arrow", For: "reading", Options: []option.Option[ReadOptions]{
	option.Bool("partial", "a stream without end mark is not an error: its writer leaves that out (default false)",
		func(o *ReadOptions) *bool { return &o.Partial }),
}}

// Strings returns the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string { return reading.Strings(&o) }

// Formats returns the names of the formats that the options are for.
func (ReadOptions) Formats() []string { return []string{reading.Format} }
