// Apollo Server as documented, with a DataLoader per request.
import { ApolloServer } from '@apollo/server'
import { startStandaloneServer } from '@apollo/server/standalone'
import { context, port, resolvers, typeDefs } from './data.mjs'

const server = new ApolloServer({ typeDefs, resolvers })
await startStandaloneServer(server, { listen: { port, host: '127.0.0.1' }, context: async () => context() })
