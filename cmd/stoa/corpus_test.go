package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/cmd/stoa/internal/reading"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// trueFindings are all findings that verify must report in the corpus. quick and full are their numbers at depth quick
// and at the two depths that read data; -1: any number, -2: one or more.
var trueFindings = []struct {
	code        string
	where       string // matches the path of the object below the corpus
	quick, full int
	why         string
}{
	// Deliberate damage: the rest of the corpus has no errors.
	{"cfile.block.checksum", `kudu/synthetic/bad_one_byte_flipped`, 0, 1, "a flipped bit in a block"},
	{"cfile.block.count", `kudu/synthetic/bad_v1_group_varint_uint32_footer`, 0, 8,
		"the footer names an encoding that the blocks do not have"},
	{"cfile.footer.damaged", `kudu/synthetic/bad_feature_bit1`, 1, 1, "the feature bit contradicts the footer"},
	{"cfile.index.damaged", `kudu/synthetic/bad_v1_magic_on_v2_lz4(index)?\.`, 2, 2,
		"the magic of version 1 on a file of version 2"},
	{"cfile.numvalues", `kudu/synthetic/bad_v1_(group_varint_uint32_footer|magic_on_v2_lz4(index)?)\.`, 3, 0,
		"the same: opening takes the number of rows from the last block; depths that read blocks report those"},
	{"parquet.footer", `trevni/negative/magic_PAR1`, 1, 1, "Parquet's magic on a Trevni body"},
	{"trevni.block.cut", `trevni/negative/(hugestored|trunc_167)`, 2, 2,
		"a stored size beyond the file; a file without its last byte"},
	{"trevni.block.damaged", `trevni/negative/(arr_false|badutf8|int64_in_int|neglen|overlong|type_BYTES|type_boolean)`,
		0, 7, "values that contradict the column's type"},
	{"trevni.column.damaged", `trevni/negative/hugeblocks`, 1, 1, "2147483632 blocks"},
	{"trevni.column.rows", `trevni/negative/rowcount_more`, 1, 1, "the header's count is not that of the blocks"},
	{"trevni.header.damaged", `trevni/negative/(child_first|hugecols|nokeys|trunc_(0|3|4|11|15|16|40))\.`, 10, 10,
		"headers that are cut, or wrong"},
	{"trevni.unsupported", `trevni/negative/(magic_3|magic_255|type_uint|codec_unknown)`, 3, 4,
		"unknown versions, an unknown type and codec"},

	// Files that Avro's own reader refuses, or reads although they are malformed.
	{"trevni.block.rawsize", `trevni/negative/wrong_raw_size`, 0, 1, "Avro does not check it"},
	{"trevni.checksum.zero", `trevni/(negative/zero_|v1[.0-9]+/(all_null_crc32|arrays|long_value|values_multi))`, 0,
		148, "Avro's null codec writes 0 for every CRC-32"},
	{"trevni.checksum.form", `trevni/negative/(crc_before_data|right_little_endian)`, 0, 2, "not where Avro puts it"},
	{"trevni.checksum.name", `trevni/negative/sum_spelled_crc_minus_32`, 0, 1,
		"the specification's spelling, which Avro does not know"},
	{"trevni.codec.zlib", `trevni/negative/zlib`, 0, 1, "a zlib header"},
	{"trevni.block.empty", `trevni/negative/two_blocks_empty`, 1, 1, "a block without rows"},
	{"trevni.block.padded", `trevni/v1\.(7\.4|7\.6|9\.1)/all_bzip2_`, 0, 60, "Avro before 1.10 pads bzip2 blocks"},
	{"trevni.column.duplicate", `trevni/negative/dup`, 1, 1, "a name twice"},
	{"trevni.coverage.gap", `trevni/negative/(gap|trail)`, 2, 2, "bytes that no structure claims"},
	{"trevni.firstvalue.boolean", `trevni/v1\.12\.2/values_boolean_two_blocks`, 1, 1,
		"Avro reads wrong values from these"},
	{"trevni.schema.inferred", `trevni/dialects/wiki_dremel`, 0, 0, "its entries allow a single schema only"},
	{"redfile.schema.guessed", `redfile/red1a/`, 4, 4, "the first generation has no schema"},

	{"file.name.duplicate", `^trevni/negative/dup\.trv$`, 1, 1, "two of its columns have one name"},

	// Files that CarbonData leaves until a table is cleaned.
	{"carbon.leftover", `carbon/managed/managed_(del|compact)/`, 3, 3,
		"earlier update statuses, their delete deltas, and compacted segments"},
	{"carbon.calendar", `^carbon/v3/dates_ts/`, 0, 1, "the SDK's dates before 1582, by the corpus's own labels"},

	// Files without checksums, because of the format or of the writer's options.
	{"file.unchecked", `^carbon(/|$)`, 0, -2, "CarbonData has no checksums"},
	{"file.unchecked", `^redfile/`, 0, -2, "RedFiles of the first programs, and of stoa without checksums"},
	{"file.unchecked", `^trevni/`, 0, -2, "Trevni columns without checksums"},
	{"file.unchecked", `^kudu/`, 0, -2, "CFiles of version 1"},

	// Directories that are stored without their logs, and files that are not data.
	{"kudu.wal.missing", `kudu/fs_(log|file)/wal/`, 54, 54, "the logs are in an archive next to them"},
	{"dir.file.unknown", `\.(json|jsonl|md|txt|gz|zst|out)$`, -1, -1, "manifests, dumps and expected contents"},
}

// TestVerifyCorpus: verify reports exactly trueFindings in the entire corpus, at every depth.
func TestVerifyCorpus(t *testing.T) {
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: the formats' own tests verify the golden files")
	}
	files := 0
	if err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var where []*regexp.Regexp
	for _, f := range trueFindings {
		where = append(where, regexp.MustCompile(f.where))
	}
	depths := []format.Depth{format.Deep, format.Sums, format.Quick}
	if testing.Short() {
		depths = depths[:1] // it finds what the others find, and more
	}
	for _, depth := range depths {
		got := make([]int, len(trueFindings))
		for f, err := range stoa.Verify(context.Background(), dir,
			stoa.OpenOptions{Formats: catalogue.Formats(), Tree: store.Local{}, Depth: depth}) {
			if err != nil {
				t.Fatal(err)
			}
			k := expected(f, dir, where)
			if k < 0 {
				t.Errorf("%s: %s", depth, reading.FindingLine(f))
				continue
			}
			got[k]++
		}
		for k, f := range trueFindings {
			want := f.full
			if depth == format.Quick {
				want = f.quick
			}
			if want >= 0 && got[k] != want || want == -2 && got[k] == 0 {
				t.Errorf("%s: %s in %s: got %d findings, want %d: %s", depth, f.code, f.where, got[k], want, f.why)
			}
		}
		t.Logf("%s: %d files", depth, files)
	}
}

// expected returns the index of the finding in trueFindings, or -1.
func expected(f region.Finding, dir string, where []*regexp.Regexp) int {
	object := f.At.Object
	if object == "" {
		object = f.Part
	}
	object = strings.TrimPrefix(filepath.ToSlash(object), strings.TrimSuffix(filepath.ToSlash(dir), "/")+"/")
	for k, x := range trueFindings {
		if x.code == f.Code && where[k].MatchString(object) {
			return k
		}
	}
	return -1
}
