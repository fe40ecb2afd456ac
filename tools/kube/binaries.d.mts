export declare const PROGRAMS: readonly string[]
export declare function kubernetesVersion(): string
export declare function linkerFlags(): string
export declare function binaryFolder(environment?: Record<string, string | undefined>): {
  folder: string
  given: boolean
}
export declare function complete(folder: string): boolean
