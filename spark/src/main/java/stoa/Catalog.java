package stoa;

import stoa.spark.PlaceCatalog;

/**
 * The tables of a place, as a catalog of Spark: {@code spark.sql.catalog.k = stoa.Catalog} and
 * {@code spark.sql.catalog.k.root = PLACE}. Without a root the name of a table is its place: {@code k.`dir#table`}.
 */
public final class Catalog extends PlaceCatalog {}
