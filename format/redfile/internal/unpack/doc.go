// Package unpack implements the decoders that RedFile needs in addition to internal/enc and internal/codec:
// GROUP_VAR_INT of INT64, gzip, and the raw size of a Snappy block.
package unpack
