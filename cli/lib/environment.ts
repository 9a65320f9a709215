import manifest from "../../package.json" with { type: "json" }

/** The one place where the command line reads the environment. */
export const environment: Record<string, string | undefined> = process.env

export const version: string = manifest.version
