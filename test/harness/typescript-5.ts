import { plugin } from "bun"

plugin({
  name: "typescript of the generator",
  setup(build) {
    build.module("typescript", async () => {
      const { default: ts } = await import("typescript-5")
      return { exports: { ...ts, default: ts }, loader: "object" }
    })
  },
})
