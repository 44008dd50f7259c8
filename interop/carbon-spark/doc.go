// Package carbonspark has the real CarbonData, under Spark, use the tables that stoa makes, loads and changes,
// and load and change them itself; stoa then reads them. interop/run carbon-spark runs it; see
// interop/README.md. The code here computes the expected values.
package carbonspark
