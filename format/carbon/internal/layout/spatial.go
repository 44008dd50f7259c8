package layout

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Spatial is the geohash index of a table: a column whose values CarbonData computes in loads from the longitudes and
// latitudes in two other columns. It is the number of a cell of a grid.
type Spatial struct {
	Column  string
	Sources [2]string // longitude, latitude

	factor int64   // of the values in the sources, so that they count 10^-8 degrees
	dx, dy float64 // degrees of a cell
	middle int32   // number of the cell at 0, 0 in each direction
}

const spatialIndex = "spatial_index"

// Spatial returns the table's geohash index; nil if it has none, or one whose values are not known to be computed as
// CarbonData 2.1.1 and later do.
func (t *TableSchema) Spatial() *Spatial {
	props := map[string]string{}
	for k, v := range t.Properties {
		props[strings.ToLower(k)] = strings.TrimSpace(v)
	}
	s := &Spatial{Column: props[spatialIndex]}
	of := func(key string) string { return props[spatialIndex+"."+strings.ToLower(s.Column)+"."+key] }
	lat, err1 := strconv.ParseFloat(of("originlatitude"), 64)
	grid, err2 := strconv.ParseInt(of("gridsize"), 10, 32)
	ratio, err3 := strconv.ParseInt(of("conversionratio"), 10, 32)
	names := strings.Split(of("sourcecolumns"), ",")
	switch {
	case err1 != nil || err2 != nil || err3 != nil || math.Abs(lat) >= 90 || grid <= 0 || ratio <= 0,
		!strings.EqualFold(of("type"), "geohash"), of("class") != "org.apache.carbondata.geo.GeoHashIndex",
		of("minlongitude")+of("minlatitude") != "", // releases before 2.1.1 need them, and compute other numbers
		len(names) != 2:
		return nil
	}
	for _, n := range append(names, s.Column) {
		if c := t.FindColumn(strings.TrimSpace(n)); c == nil || c.Type != TypeLong || c.HasGlobalDictionary() {
			return nil
		}
	}
	s.Sources = [2]string{strings.TrimSpace(names[0]), strings.TrimSpace(names[1])}
	s.grid(lat, float64(grid))
	s.factor = 100_000_000 / ratio
	return s
}

// grid computes the size of cells step by step as CarbonData does, because a rounding may move a point to the next
// cell.
func (s *Spatial) grid(lat, meters float64) {
	pi, earth := math.Pi, 6371004.0 // variables, as constant expressions are not rounded
	s.dx = 180 * meters / (pi * earth * cosine(lat*pi/180))
	s.dy = 180 * meters / (pi * earth)
	level := max(math.Ceil(math.Log(360/s.dx)/math.Log(2)), math.Ceil(math.Log(180/s.dy)/math.Log(2)))
	s.middle = 1 << (uint32(int32(level)-1) & 31) // as Java shifts
}

// cosine returns the cosine of x, which is less than 2 in size, as the nearest float64; math.Cos may return its
// neighbour.
func cosine(x float64) float64 {
	const bits = 200 // after the point
	fraction, exp := math.Frexp(x)
	if exp < -60 {
		return 1
	}
	square := big.NewInt(int64(math.Ldexp(fraction, 53)))
	square.Lsh(square, uint(bits+exp-53))
	square.Rsh(square.Mul(square, square), bits)
	sum := new(big.Int).Lsh(big.NewInt(1), bits)
	for term, k := new(big.Int).Set(sum), int64(1); k < 60; k += 2 {
		term.Rsh(term.Mul(term, square), bits)
		sum.Add(sum, term.Quo(term, big.NewInt(-k*(k+1))))
	}
	n := sum.BitLen() - 62
	top := sum.Rsh(sum, uint(n)).Int64() | 1 // the lowest bit stands for those that are cut off
	return math.Ldexp(float64(top), n-bits)
}

// ID returns the value of the index for a row.
func (s *Spatial) ID(longitude, latitude int64) (id int64) {
	cell := func(v int64, size float64) int64 {
		at := math.Floor(float64(v*s.factor) / size / 100_000_000)
		return int64(int32(max(math.MinInt32, min(math.MaxInt32, at))) + s.middle)
	}
	col, row := cell(longitude, s.dx), cell(latitude, s.dy)
	for bit := 0; row > 0 || col > 0; bit++ {
		id |= (row&1)<<((2*bit+1)&63) | (col&1)<<(2*bit&63)
		row, col = row>>1, col>>1
	}
	return id
}

// Uses reports whether the values of the index are those of a column, or computed from them.
func (s *Spatial) Uses(name string) bool {
	return s != nil && (strings.EqualFold(name, s.Column) || strings.EqualFold(name, s.Sources[0]) ||
		strings.EqualFold(name, s.Sources[1]))
}
