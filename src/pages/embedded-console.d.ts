/** Written by `bun run build` into `dist/console`: the files of the bundle, as the binary carries them. */
declare module "belfry-console" {
  /** The paths of the two compressed forms of each file, by its hashed name. */
  export const files: Record<string, { brotli: string; gzip: string }>
  /** The hashed name of each entry. */
  export const entries: Record<import("./console-bundle").EntryName, string>
  /** By page: the hashed names of its scripts. */
  export const pages: Record<string, string[]>
  /** The paths of the two compressed forms of each document, and its ETag. */
  export const documents: Record<
    import("./docs/documents").DocumentName,
    { brotli: string; gzip: string; etag: string }
  >
}
