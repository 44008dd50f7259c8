package table

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/status"
	"stoa/format/option"
	"stoa/store"
)

// Granularity is the step of direct dictionary timestamps.
type Granularity string

// Calendar is the calendar of dates and times before 15 October 1582.
type Calendar string

// The calendars; the zero value stands for that of the file's writer, as far as it can be determined.
const (
	HybridCalendar    Calendar = "hybrid"
	ProlepticCalendar Calendar = "proleptic"
)

// Options are the options of Open; package carbon documents them.
type Options struct {
	Segment         []string
	Segments        []string
	Bucket          *int
	Properties      string
	BlockletSize    int32
	CutoffTimestamp string
	TimeGranularity Granularity
	Timezone        string
	Positions       bool
	Deleted         bool
	External        bool
	Calendar        Calendar
	Since           string
	At              string
}

// ReadTable are the options of Open.
var ReadTable = option.Table[Options]{Format: "carbon", For: "reading", Options: []option.Option[Options]{
	option.List("segment", "N,N", "read these segments only (also compacted and deleted ones)",
		func(o *Options) *[]string { return &o.Segment }),
	option.List("segments", "N,N,… or all", "read these segments; all: every one whose files exist, also "+
		"compacted and deleted ones", func(o *Options) *[]string { return &o.Segments }),
	option.IntAt("bucket", "N", "read this bucket only", func(o *Options) **int { return &o.Bucket }, 0, math.MaxInt32),
	option.Text("properties", "FILE", "a carbon.properties: carbon.storelocation, carbon.blocklet.size, "+
		"carbon.cutOffTimestamp, carbon.timegranularity", func(o *Options) *string { return &o.Properties }),
	option.Int("blocklet-size", "ROWS",
		"formats 1 and 2: carbon.blocklet.size of the writer (default: derived from the "+
			"pages)", func(o *Options) *int32 { return &o.BlockletSize }, 1, math.MaxInt32),
	option.Text("cutoff-timestamp", "yyyy-MM-dd HH:mm:ss", "carbon.cutOffTimestamp of the writer (direct dictionary "+
		"timestamps)", func(o *Options) *string { return &o.CutoffTimestamp }),
	option.Pick("time-granularity", "carbon.timegranularity of the writer (direct dictionary timestamps)",
		func(o *Options) *Granularity { return &o.TimeGranularity }, "SECOND", "MINUTE", "HOUR", "DAY"),
	option.Text("timezone", "ZONE", "time zone of texts without one: the cut-off timestamp and timestamps in "+
		"partition names (default UTC)", func(o *Options) *string { return &o.Timezone }),
	option.Bool("positions",
		"add the columns stoa_file and stoa_row: data file and ordinal of each row (default false)",
		func(o *Options) *bool { return &o.Positions }),
	option.Bool("deleted", "include deleted rows (default false)",
		func(o *Options) *bool { return &o.Deleted }),
	option.Bool("external", "read what the table names outside of the place that was named, too: segments and "+
		"partitions with a location of their own (default false: an error)",
		func(o *Options) *bool { return &o.External }),
	option.Pick("calendar", "of dates and timestamps before 15 October 1582: hybrid, Java's, which is Julian there; "+
		"proleptic, Gregorian throughout (default that of the writer, hybrid if it is not known)",
		func(o *Options) *Calendar { return &o.Calendar }, HybridCalendar, ProlepticCalendar),
	option.Text("since", "SEGMENT or TIME", "read what changed after the load of a segment, or after a time: rows "+
		"that were deleted and rows that were added, with the column stoa_change",
		func(o *Options) *string { return &o.Since }),
	option.Text("at", "SEGMENT or TIME", "read the rows as they were after the load of a segment, or at a time, in "+
		"the columns of now", func(o *Options) *string { return &o.At }),
}}

// ReadOptions are the options of Open, parsed.
type ReadOptions struct {
	Segments    []string // nil: those that tablestatus counts
	allSegments bool
	Bucket      int // -1: all
	properties  string
	Blocklet    int64 // carbon.blocklet.size; 0: unknown
	cutoff      string
	granularity string
	Zone        *time.Location // time zone of texts that have none
	deleted     bool
	positions   bool
	location    string // carbon.storelocation
	Calendar    Calendar
	External    bool   // locations outside of Root are followed
	Since       string // changes after this moment are read; "": the rows of now
	At          string // rows of this moment are read; "": of now
	Root        string // the place that the user named; "" = the table
}

// ParseOptions parses the options of Open. Errors are Invalid.
func ParseOptions(opts map[string]string) (o ReadOptions, err error) {
	r, err := ReadTable.Parse(opts)
	o = ReadOptions{Segments: r.Segment, Bucket: -1, properties: r.Properties, Blocklet: int64(r.BlockletSize),
		cutoff: r.CutoffTimestamp, granularity: string(r.TimeGranularity), Zone: time.UTC, deleted: r.Deleted,
		positions: r.Positions, External: r.External, Calendar: r.Calendar, Since: r.Since, At: r.At}
	if err != nil {
		return o, err
	}
	if o.allSegments = slices.Equal(r.Segments, []string{"all"}); !o.allSegments {
		o.Segments = append(o.Segments, r.Segments...)
	}
	for name, given := range map[string]bool{"since": o.Since != "", "at": o.At != ""} {
		if given && (o.Segments != nil || o.allSegments || o.deleted || o.positions) {
			return o, fault.Invalidf("carbon: option %s cannot be given with segment, segments, deleted or positions",
				name)
		}
	}
	if o.Since != "" && o.At != "" {
		return o, fault.Invalidf("carbon: option since cannot be given with at")
	}
	if r.Bucket != nil {
		o.Bucket = *r.Bucket
	}
	if r.Timezone != "" {
		if o.Zone, err = time.LoadLocation(r.Timezone); err != nil {
			return o, fault.Invalidf("carbon: option timezone=%s: %v", r.Timezone, err)
		}
	}
	return o, nil
}

// fits returns Invalid if name is not a managed table but an option for managed tables is set.
func (o *ReadOptions) fits(name string, k Kind) error {
	if k == KindTable {
		return nil
	}
	for _, x := range []struct {
		given bool
		name  string
	}{
		{o.Segments != nil, "segment"}, {o.allSegments, "segments"}, {o.deleted, "deleted"}, {o.positions, "positions"},
		{o.Since != "", "since"}, {o.At != "", "at"},
	} {
		if x.given {
			return fault.Invalidf("%s is a part of a CarbonData table: option %s is for whole tables", name, x.name)
		}
	}
	return nil
}

// Everything returns the options for all rows of all segments whose files exist.
func (o ReadOptions) Everything() ReadOptions {
	o.allSegments, o.deleted = true, true
	return o
}

// Complete reads the file of properties, if one is given. Options take precedence over it.
func (o *ReadOptions) Complete(ctx context.Context, tree store.Tree, l format.Limits) error {
	if o.properties == "" {
		return nil
	}
	obj, err := layout.OpenObject(ctx, tree, o.properties, l)
	if err != nil {
		return err
	}
	b, err := obj.Read(ctx, 0, obj.At.Len, "")
	if err != nil {
		return err
	}
	p := Properties(b)
	o.location = p["carbon.storelocation"]
	if o.cutoff == "" {
		o.cutoff = p["carbon.cutOffTimestamp"]
	}
	if o.granularity == "" {
		o.granularity = p["carbon.timegranularity"]
	}
	if v := p["carbon.blocklet.size"]; v != "" && o.Blocklet == 0 {
		if o.Blocklet, err = strconv.ParseInt(v, 10, 32); err != nil || o.Blocklet <= 0 {
			return fault.Invalidf("%s: carbon.blocklet.size: expected a number of rows, found %q", o.properties, v)
		}
	}
	return nil
}

// DefaultStoreLocation is the location of a store if no carbon.properties states one: the default of
// carbon.storelocation, relative to the working directory.
const DefaultStoreLocation = "../carbon.store"

// StoreLocation returns the store that a carbon.properties file names, DefaultStoreLocation if it names none. A
// relative path is relative to the working directory, as in CarbonData; URIs other than file: are Unsupported.
func StoreLocation(ctx context.Context, tree store.Tree, file string) (string, error) {
	o := ReadOptions{properties: file}
	if err := o.Complete(ctx, tree, format.Limits{}); err != nil {
		return "", err
	}
	place, isFile := strings.CutPrefix(cmp.Or(o.location, DefaultStoreLocation), "file:")
	if isFile && strings.HasPrefix(place, "//") {
		place = "/" + strings.TrimLeft(place, "/")
	}
	if i := strings.Index(place, "://"); i >= 0 {
		return "", fault.Unsupportedf(fault.Span{Object: file}, "carbon.storelocation",
			"%s: only local directories are read", place)
	}
	return place, nil
}

// Properties parses a Java properties file: lines key = value; # and ! begin a comment.
func Properties(b []byte) map[string]string {
	out := map[string]string{}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		s := strings.TrimSpace(sc.Text())
		if s == "" || s[0] == '#' || s[0] == '!' {
			continue
		}
		if i := strings.IndexAny(s, "=:"); i >= 0 {
			v := strings.TrimSpace(s[i+1:])
			out[strings.TrimSpace(s[:i])] = strings.NewReplacer(`\:`, ":", `\=`, "=", `\ `, " ").Replace(v)
		}
	}
	return out
}

// units are the steps of direct dictionary timestamps, in milliseconds.
var units = map[string]int64{"": 1000, "SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}

// Rule returns the rule for decoding direct dictionary timestamps. The cut-off is a time in o.Zone. Errors are Invalid.
func (o *ReadOptions) Rule() (page.DateRule, error) {
	u, ok := units[strings.ToUpper(o.granularity)]
	if !ok {
		return page.DateRule{}, fault.Invalidf(
			"carbon: time granularity: expected SECOND, MINUTE, HOUR or DAY, found %q", o.granularity)
	}
	r := page.DateRule{Unit: u}
	if o.cutoff != "" {
		when, err := time.ParseInLocation("2006-01-02 15:04:05", o.cutoff, o.Zone)
		if err != nil {
			return r, fault.Invalidf("carbon: cut-off timestamp: expected yyyy-MM-dd HH:mm:ss, found %q", o.cutoff)
		}
		r.Cutoff = when.UnixMilli()
	}
	return r, nil
}

// Wants reports whether the options select a load.
func (o *ReadOptions) Wants(l *status.Load) bool {
	switch {
	case o.allSegments:
		return true
	case o.Segments != nil:
		return slices.Contains(o.Segments, l.Name) || slices.Contains(o.Segments, l.SegmentID())
	}
	return l.Counts()
}
