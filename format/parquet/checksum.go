package parquet

import (
	"context"
	"hash/crc32"

	"stoa/fault"
	"stoa/format"
)

// checkSum compares the checksum of a page. buf is memory for its bytes.
func (r *reader) checkSum(ctx context.Context, p page, path string, buf *[]byte) error {
	if p.body.Len > r.limits.Page {
		return fault.Limitf(p.body, path, "%d bytes, the limit is %d", p.body.Len, r.limits.Page)
	}
	if int64(cap(*buf)) < p.body.Len {
		*buf = make([]byte, p.body.Len)
	}
	b := (*buf)[:p.body.Len]
	if err := format.ReadFull(ctx, r.src, p.body, path, b); err != nil {
		return err
	}
	if got := crc32.ChecksumIEEE(b); got != p.crc {
		return fault.Corruptf(p.body, path+".crc", "the checksum is %08x, the header says %08x", got, p.crc)
	}
	return nil
}
