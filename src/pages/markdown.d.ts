/** Pages of docs/ are imported as text (`with { type: "text" }`), so that the binary carries them. */
declare module "*.md" {
  const text: string
  export default text
}
