/** First of all, before any part reads the address: the key in it is put away. */
import { takeKey } from "./key";

takeKey();
