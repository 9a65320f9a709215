/** `up` is a laptop's own server with one project; the shell of the page says which it is. */
export function serverMode(): "up" | "serve" {
  const meta = document.querySelector<HTMLMetaElement>("meta[name=belfry-mode]")
  return meta?.content === "up" ? "up" : "serve"
}
