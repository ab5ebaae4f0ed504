import { expect, test } from "vitest";
import { split } from "./key";

test("the key is taken out of the address", () => {
  expect(split("#/settings?key=abc")).toEqual({ rest: "#/settings", key: "abc" });
  expect(split("#/?key=abc")).toEqual({ rest: "#/", key: "abc" });
  expect(split("#/settings")).toEqual({ rest: "#/settings" });
  expect(split("#/settings?key=")).toEqual({ rest: "#/settings?key=" });
  expect(split("")).toEqual({ rest: "" });
});
