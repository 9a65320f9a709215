/** What the trusted comment of a release says. It is signed with the archive. */
export interface ReleaseFacts {
  version: string
  /** `linux-x64`, `linux-arm64-musl` … */
  platform: string
  /** The name of the archive. */
  file: string
}

/** `version:0.2.0`, `platform:linux-x64`, `file:…`, with tabs between them as minisign has them. */
export const releaseComment = ({ version, platform, file }: ReleaseFacts): string =>
  `version:${version}\tplatform:${platform}\tfile:${file}`

/** The facts of such a comment; `undefined` where one is missing. */
export function readReleaseComment(comment: string): ReleaseFacts | undefined {
  const facts = new Map(
    comment.split("\t").map((part) => {
      const at = part.indexOf(":")
      return [part.slice(0, at), part.slice(at + 1)] as const
    }),
  )
  const [version, platform, file] = ["version", "platform", "file"].map((name) => facts.get(name))
  if (!version || !platform || !file || !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) return undefined
  return { version, platform, file }
}

/** The archive of one platform. */
export const archiveName = (version: string, platform: string): string =>
  `belfry-${version}-${platform}.tar.gz`
