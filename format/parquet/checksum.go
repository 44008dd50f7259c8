package parquet

import (
	"context"
	"hash/crc32"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
)

// checkSum compares the checksum of a page. buf is memory for its bytes.
func (r *File) checkSum(ctx context.Context, p meta.Page, path string, buf *[]byte) error {
	if p.Body.Len > r.limits.Page {
		return fault.Limitf(p.Body, path, "%d bytes, the limit is %d", p.Body.Len, r.limits.Page)
	}
	if int64(cap(*buf)) < p.Body.Len {
		*buf = make([]byte, p.Body.Len)
	}
	b := (*buf)[:p.Body.Len]
	if err := format.ReadFull(ctx, r.src, p.Body, path, b); err != nil {
		return err
	}
	if got := crc32.ChecksumIEEE(b); got != p.Crc {
		return fault.Corruptf(p.Body, path+".crc", "the checksum is %08x, the header says %08x", got, p.Crc)
	}
	return nil
}
