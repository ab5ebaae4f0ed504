// Draws the world once, while building: outlines as SVG paths and a point for every country, so that the dashboard
// carries neither the projection nor the topology.
import { geoArea, geoCentroid, geoNaturalEarth1, geoPath } from "d3-geo";
import codes from "i18n-iso-countries";
import { createRequire } from "node:module";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import type { Plugin } from "vite";

const NAME = "virtual:world";
const WIDTH = 960;
const HEIGHT = 470;

type World = Topology<{ countries: GeometryCollection<{ name: string }> }>;
type Shape = GeoJSON.Feature<GeoJSON.Geometry, { name: string }>;

function shapes(detail: "50m" | "110m"): Shape[] {
  const world = createRequire(import.meta.url)(`world-atlas/countries-${detail}.json`) as World;
  return feature(world, world.objects.countries).features;
}

/** The middle of a country's largest part: that of France is not in the Atlantic. */
function middle(shape: Shape): [number, number] {
  if (shape.geometry.type !== "MultiPolygon") return geoCentroid(shape);
  const parts = shape.geometry.coordinates.map((coordinates) => ({
    type: "Polygon" as const,
    coordinates,
  }));
  return geoCentroid(parts.reduce((a, b) => (geoArea(a) > geoArea(b) ? a : b)));
}

function draw() {
  const inhabited = shapes("110m").filter((shape) => shape.properties.name !== "Antarctica");
  const projection = geoNaturalEarth1().fitSize([WIDTH, HEIGHT], {
    type: "FeatureCollection",
    features: inhabited,
  });
  const path = geoPath(projection).digits(1);
  const code = (shape: Shape) =>
    shape.id === undefined ? undefined : codes.numericToAlpha2(String(shape.id));
  const land = inhabited.map((shape) => ({ code: code(shape) ?? "", path: path(shape) ?? "" }));
  const middles: Record<string, [number, number]> = {};
  for (const shape of shapes("50m")) {
    const [alpha2, at] = [code(shape), projection(middle(shape))];
    if (alpha2 && at) middles[alpha2] = [Math.round(at[0]), Math.round(at[1])];
  }
  return { width: WIDTH, height: HEIGHT, land, middles };
}

export function world(): Plugin {
  return {
    name: "apoidea-world",
    resolveId: (id) => (id === NAME ? `\0${NAME}` : undefined),
    load: (id) => (id === `\0${NAME}` ? `export default ${JSON.stringify(draw())}` : undefined),
  };
}
