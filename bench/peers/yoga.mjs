// GraphQL Yoga on Node's own HTTP server, with a DataLoader per request.
import { createServer } from 'node:http'
import { createSchema, createYoga } from 'graphql-yoga'
import { context, port, resolvers, typeDefs } from './data.mjs'

const yoga = createYoga({ schema: createSchema({ typeDefs, resolvers }), context, logging: false, graphiql: false })
createServer(yoga).listen(port, '127.0.0.1')
