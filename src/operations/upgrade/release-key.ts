/** Put there by the build of a release: the second line of the maintainers' `minisign.pub`. */
declare const BELFRY_RELEASE_KEY: string | undefined

/** The public key that releases are signed with; null in a binary that is no release. */
export const releaseKey = (): string | null =>
  typeof BELFRY_RELEASE_KEY === "string" ? BELFRY_RELEASE_KEY : null
