/**
 * Two schemas of one builder: operators see everything, tenants only what isn't marked with
 * `extensions: FOR_OPERATORS`. What is marked isn't hidden from tenants but absent from what they
 * are served, so neither validation nor introspection knows of it.
 */
import SchemaBuilder, {
  BasePlugin,
  type PothosEnumValueConfig,
  type PothosInputFieldConfig,
  type PothosOutputFieldConfig,
  type SchemaTypes,
} from '@pothos/core'
import { GraphQLSchema } from 'graphql'

type Audience = 'tenants' | 'operators'

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      audience: AudiencePlugin<Types>
    }
    export interface BuildSchemaOptions<Types extends SchemaTypes> {
      audience: Audience
    }
  }
}

/** Marks a type, field, argument, input field or enum value that only operators are served. */
export const FOR_OPERATORS = { operators: true } as const

type Marked = { extensions?: Readonly<Record<string, unknown>> | null | undefined }

const isForOperators = ({ extensions }: Marked): boolean => extensions?.['operators'] === true

class AudiencePlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onOutputFieldConfig(field: PothosOutputFieldConfig<Types>) {
    return this.#isShown(field) ? field : null
  }

  override onInputFieldConfig(field: PothosInputFieldConfig<Types>) {
    return this.#isShown(field) ? field : null
  }

  override onEnumValueConfig(value: PothosEnumValueConfig<Types>) {
    return this.#isShown(value) ? value : null
  }

  /** Types that are marked are in the list of all types, whether or not anything leads to them. */
  override afterBuild(schema: GraphQLSchema): GraphQLSchema {
    if (this.options.audience === 'operators') return schema
    const config = schema.toConfig()
    const types = config.types.filter((type) => !isForOperators(type))
    return new GraphQLSchema({ ...config, types })
  }

  #isShown(config: Marked): boolean {
    return this.options.audience === 'operators' || !isForOperators(config)
  }
}

SchemaBuilder.registerPlugin('audience', AudiencePlugin)
