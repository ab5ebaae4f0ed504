declare module "virtual:world" {
  /** The outlines of the countries, and a point in each, by their two letters. */
  const world: {
    width: number;
    height: number;
    land: { code: string; path: string }[];
    middles: Record<string, [number, number] | undefined>;
  };
  export default world;
}
