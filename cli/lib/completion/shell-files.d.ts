/** Completion scripts are imported as text (`with { type: "text" }`), so that the binary carries them. */
declare module "*.bash" {
  const script: string
  export default script
}

declare module "*.zsh" {
  const script: string
  export default script
}

declare module "*.fish" {
  const script: string
  export default script
}
